// Lets search work on pages opened from a folder: browsers start no worker from file:, so the
// worker's script runs in a hidden frame, with messages passed by hand.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const load = (source, then) => {
        const script = frame.contentDocument.createElement("script");
        script.src = source;
        script.onload = then;
        frame.contentDocument.head.append(script);
      };
      this.inside.importScripts = (...sources) =>
        Promise.all(sources.map((source) => new Promise((done) => load(source, done))));
      load(url, () => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }
    postMessage(data) {
      if (!this.ready) this.waiting.push(data);
      else this.inside.dispatchEvent(new MessageEvent("message", { data }));
    }
    terminate() {}
  };
}
