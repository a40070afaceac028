"""Runs scenarios with the official Python client of this environment, a JSON line each.

``python driver.py SERVICE_URL ADMIN_URL NAMESPACE FOLDER [SCENARIO ...]``. The folder receives logs
and holds ``public.pem`` and ``private.pem``. Scenarios that this version does not support are
reported as absent.
"""

import json
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import administering
import consuming
import producing
import reading
import restart
import typed
from place import Place, place_for

AT_ONCE = 12
SUBJECTS = [consuming, producing, reading, typed, administering]
PARALLEL = [scenario for subject in SUBJECTS for scenario in subject.SCENARIOS]
ALL = {scenario.__name__: scenario for scenario in [*PARALLEL, *restart.SCENARIOS]}
_writing = threading.Lock()


def run(common, name):
    """Run a scenario and write its line."""
    started = time.monotonic()
    line = {"scenario": name}
    try:
        with place_for(common, name) as place:
            line["result"] = ALL[name](place)
    except (TypeError, AttributeError) as error:
        absent = "unexpected keyword" in str(error) or "has no attribute" in str(error)
        line["absent" if absent else "error"] = str(error)
    except Exception as error:  # noqa: BLE001
        line["error"] = f"{type(error).__name__}: {error}"
        line["trace"] = traceback.format_exc()
    line["seconds"] = round(time.monotonic() - started, 2)
    with _writing:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def main():
    """Run the named scenarios; without names all but the restart."""
    service_url, admin_url, namespace, folder, *names = sys.argv[1:]
    common = Place(service_url, admin_url, namespace, Path(folder))
    names = names or [scenario.__name__ for scenario in PARALLEL]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(run, common, name) for name in names]:
            done.result()


if __name__ == "__main__":
    main()
