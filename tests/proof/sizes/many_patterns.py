"""One client lists with 100,000 different patterns: the broker's cache of results stays bounded.

Without a bound the results alone would be 2.5 GB: each pattern keeps 250 names of 100 bytes.
"""

from time import perf_counter

from benchmarks.listings.corpus import NAMESPACE, listing_names, write_text_file
from loadgen.places.server_process import ServerProcess, running_server
from tests.proof.process_memory import peak_resident_bytes, reset_peak, resident_bytes
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import ClusterSettings, check_logs, samples
from tests.proof.sizes.large_listings import LargeClient

NAMES = 2_500
PATTERNS, QUICK_PATTERNS = 100_000, 5_000
WARM_UP_PATTERNS = 100
CACHE_MB = 64
ALLOWED_BEYOND_BYTES = 32_000_000
"""The process's growth beside the cache: compiled patterns, buffers, fragments."""
LOOKS = 20


def prove(options: ProofOptions) -> ProofResult:
    """List with all patterns while sampling the broker's memory."""
    topics = options.out / "topics.txt"
    write_text_file(topics, NAMES)
    keys = {
        "metadataStoreUrl": "memory:local",
        "floodgateProfile": "floodgate",
        "floodgateListingCacheMB": str(CACHE_MB),
    }
    result = ProofResult()
    settings = ClusterSettings(options.out, {}, keys, (topics,))
    with running_server(settings.broker_launch()) as broker:
        _list_all(options, broker, result)
    check_logs(options.out, result)
    return result


def _list_all(options: ProofOptions, broker: ServerProcess, result: ProofResult) -> None:
    patterns = QUICK_PATTERNS if options.quick else PATTERNS
    asking = _Asking(LargeClient(broker.service_url))
    asking.ask(WARM_UP_PATTERNS)
    idle = resident_bytes(broker.pid)
    reset_peak(broker.pid)
    began, grown = perf_counter(), []
    for look in range(LOOKS):
        options.note(f"{look * patterns // LOOKS:,} of {patterns:,} patterns")
        asking.ask(patterns // LOOKS)
        grown.append(resident_bytes(broker.pid) - idle)
    seconds = perf_counter() - began
    asking.client.leave()
    found = samples(broker)
    cache_bytes = next(value for name, value in found.items() if name.startswith(CACHE_METRIC))
    peak = peak_resident_bytes(broker.pid) - idle
    result.figures.update(
        idle_bytes=idle, grown_bytes=grown, peak_bytes=peak, cache_bytes=cache_bytes
    )
    _judge(asking, peak, cache_bytes, seconds, result)


CACHE_METRIC = "floodgate_listing_cache_bytes"


class _Asking:
    """Lists with pattern after pattern; mutable state: their number."""

    def __init__(self, client: LargeClient) -> None:
        names = listing_names(NAMES)
        self.client = client
        self._kept = [names[digit::10] for digit in range(10)]
        self.asked = 0
        self.wrong = 0

    def ask(self, patterns: int) -> None:
        """List with so many new patterns; each keeps a tenth."""
        for number in range(self.asked, self.asked + patterns):
            digit = number % 10
            answer = self.client.list(NAMESPACE, f"{NAMESPACE}/.*({digit}|x{number})")
            self.wrong += (
                list(answer.command.getTopicsOfNamespaceResponse.topics) != (self._kept[digit])
            )
        self.asked += patterns


def _judge(
    asking: _Asking, peak: int, cache_bytes: float, seconds: float, result: ProofResult
) -> None:
    result.check(
        "every answer right",
        not asking.wrong,
        f"{asking.asked:,} different patterns were asked with in {seconds:.0f} s "
        f"({asking.asked / seconds:,.0f} a second), {asking.wrong} answers were wrong",
    )
    cache_limit = CACHE_MB * 1024 * 1024
    result.check(
        "the cache's own books",
        0 < cache_bytes <= cache_limit,
        f"the cache says that it holds {cache_bytes / 1e6:.1f} of {cache_limit / 1e6:.1f} MB",
    )
    allowed = cache_limit + ALLOWED_BEYOND_BYTES
    result.check(
        "resident memory",
        peak <= allowed,
        f"the broker grew by {peak / 1e6:.0f} MB at most, allowed are {allowed / 1e6:.0f} MB: "
        f"floodgateListingCacheMB={CACHE_MB} and {ALLOWED_BEYOND_BYTES / 1e6:.0f} MB",
    )
