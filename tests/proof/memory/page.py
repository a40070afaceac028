"""Puts the last transcript of out_of_memory into its page: ``python -m tests.proof.memory.page``.

Run the proof from the checkout's folder, so that the page has no path outside of it.
"""

from benchmarks.processes import ROOT

PAGE = ROOT / "docs" / "out-of-memory.md"
TRANSCRIPT = ROOT / "out" / "proof" / "out_of_memory" / "transcript.txt"
_BEGIN, _END = "<!-- transcript -->\n", "<!-- end of transcript -->\n"


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(_BEGIN)
    _, _, behind = rest.partition(_END)
    shown = TRANSCRIPT.read_text(encoding="utf-8").strip()
    PAGE.write_text(f"{before}{_BEGIN}```\n{shown}\n```\n{_END}{behind}", encoding="utf-8")


if __name__ == "__main__":
    main()
