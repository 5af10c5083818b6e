"""Large samples as a folder of shards: each a Parquet file of its own seed, whole or absent, here or on a cluster."""

import hashlib
import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sgfn.config.archives import pack_folder, unpack_folder
from sgfn.config.checks import in_range, require, whole_number
from sgfn.config.cluster import Needs, check_cluster_settings, device_on_node
from sgfn.config.cluster_jobs import Event, Job, Report, error_words, gpus_wanted, perform_all
from sgfn.config.files import read_json, replacing, sweep, write_json
from sgfn.config.shipping import Shipment, settled, shipment
from sgfn.config.staging import LOCK, holding
from sgfn.config.work_folders import own_folder
from sgfn.runs.copies import DATA, checksum
from sgfn.runs.folder import DRAWN, OWN_FILES, Run
from sgfn.runs.loop import Stop, stoppable
from sgfn.runs.model import Model, opened
from sgfn.runs.sampling import write_samples
from sgfn.runs.table_files import import_pyarrow
from sgfn.runs.trust import Trust

PLAN = "samples.json"
SHARD = 1_000_000
"""Samples of a shard, where nothing is said."""
MOST, MOST_SHARDS, LARGEST = 10**12, 100_000, 10**8
"""Samples in all, shards, and samples of one shard, which travels as one piece."""
EVERY = 0.5
"""Seconds between reports of a shard."""
STEP, SEEDS = 0x9E3779B1, 2**31
"""Distance of the seeds of two shards that follow each other, an odd number: no two of a folder are equal."""
KEPT_OF_RUN = {*OWN_FILES} - {*DRAWN, "metrics.jsonl"}
"""Files of a run that travel, with the copies in its data folder."""
Progress = Callable[[int], None]
"""Told how many samples there are."""


@dataclass(frozen=True, kw_only=True)
class ShardPlan:
    """samples.json: what a folder of shards holds; the same command goes on with it, another one is refused."""

    n: int
    shard_size: int
    seed: int
    temperature: float
    greedy: bool
    run: str
    """SHA-256 of the run's weights."""

    def __post_init__(self) -> None:
        whole_number("-n", self.n, 1, MOST)
        whole_number("--shard-size", self.shard_size, 1, LARGEST)
        in_range("seed", self.seed, 0, SEEDS - 1)
        count = self.count
        require(count <= MOST_SHARDS, "shards", f"be at most {MOST_SHARDS:,}", f"{count:,}: take a larger --shard-size")

    @property
    def count(self) -> int:
        """Number of shards."""
        return -(-self.n // self.shard_size)

    def rows(self, shard: int) -> int:
        """Samples of a shard; the last one has what is left."""
        return min(self.shard_size, self.n - shard * self.shard_size)

    def shard_seed(self, shard: int) -> int:
        """Seed of a shard's draws."""
        begin = int.from_bytes(hashlib.sha256(str(self.seed).encode()).digest()[:4], "big")
        return (begin + shard * STEP) % SEEDS

    def name(self, shard: int) -> str:
        """File of a shard."""
        return f"shard-{shard:05d}.parquet"


@dataclass(frozen=True, kw_only=True)
class Shards:
    """A folder of shards that is whole."""

    path: Path
    samples: int
    files: list[str]
    drawn: int
    """Shards that this call drew; the others were there before."""


def sample_shards(
    run: Path | str,
    n: int,
    out: Path | str,
    *,
    shard_size: int = SHARD,
    shards: int | None = None,
    temperature: float = 1.0,
    greedy: bool = False,
    seed: int = 0,
    device: str = "auto",
    overwrite: bool = False,
    progress: Progress | None = None,
    trust: Trust = False,
    cluster: str | None = None,
    cluster_cpus: float = 1.0,
    cluster_gpus: float | None = None,
) -> Shards:
    """Draw n objects from a trained run into a folder of `shards` Parquet files, or with `shard_size` of them in each.

    A shard depends on the run, the settings and its number alone (on a CPU bit for bit), not on who draws it or when:
    one that is there is kept, so the same call goes on after a stop. With `cluster` shards are jobs of Ray, each with
    so many CPUs and GPUs of a node; the run travels there. Otherwise see `sample`.
    """
    out = Path(out)
    check_cluster_settings(cluster, cluster_cpus, cluster_gpus)
    import_pyarrow(out)
    folder = Run(path=Path(run), trust=trust)
    if folder.read_config()[0] == "series":
        raise ValueError(f"{folder.path} holds a forecast, whose paths are one table: leave shards and the cluster out")
    model = opened(folder, device if cluster is None else "cpu")  # refuses what is not trusted, wherever it is drawn
    settings = {"seed": seed, "temperature": float(temperature), "greedy": greedy}
    size = shard_size if shards is None else size_of(n, shards)
    plan = ShardPlan(n=n, shard_size=size, run=checksum(folder.checkpoint), **settings)
    model.stream(1, plan.temperature, greedy, seed=seed)  # raises where settings cannot be
    size_flag = "--shard-size" if shards is None else "--shards"
    with _opened_folder(out, plan, overwrite, size_flag), stoppable(at_once=_again(out)) as stop:
        missing = [shard for shard in range(plan.count) if not whole_shard(out, plan, shard)]
        taken = _Taken(out, plan, missing, progress or (lambda _: None))
        jobs = [Job(name=plan.name(shard), function=draw_shard, argument=_argument(plan, shard)) for shard in missing]
        shared: Any = model if cluster is None else _travelling(folder, device)

        def needs(ray: Any) -> Needs:
            return Needs(cpus=cluster_cpus, gpus=gpus_wanted(ray, device, cluster_gpus))

        perform_all(jobs, taken, cluster=cluster, needs=needs, shared=shared, stop=lambda: stop.asked)
    taken.check(stop)
    return Shards(path=out, samples=n, files=[plan.name(i) for i in range(plan.count)], drawn=len(missing))


def size_of(n: int, shards: int) -> int:
    """Samples of each of so many shards.

    >>> size_of(10, 3)
    4
    """
    whole_number("-n", n, 1, MOST)
    whole_number("--shards", shards, 1, min(n, MOST_SHARDS))
    least = -(-n // LARGEST)
    require(shards >= least, "--shards", f"be at least {least:,} for {n:,} samples, {LARGEST:,} in each", shards)
    return -(-n // shards)


def _again(out: Path) -> str:
    return f"stopped at once; the same command goes on in {out}"


@contextmanager
def _opened_folder(out: Path, plan: ShardPlan, overwrite: bool, size_flag: str) -> Iterator[None]:
    """Hold the folder while its shards are drawn; one with another plan, or of somebody else, is refused."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file: give --out the name of a folder, which shards need")
    others = [path for path in out.iterdir() if path.name != LOCK] if out.is_dir() else []
    if others and not (out / PLAN).is_file():
        raise ValueError(f"{out} holds something else than shards of samples: give --out another name")
    out.mkdir(parents=True, exist_ok=True)
    with holding(out):
        sweep(out)
        if (out / PLAN).is_file() and not overwrite:
            _refuse_other(out, plan, size_flag)
        else:
            for old in out.glob("shard-*.parquet"):
                old.unlink()
            write_json(out / PLAN, asdict(plan))
        yield


def _refuse_other(out: Path, plan: ShardPlan, size_flag: str) -> None:
    there = read_json(out / PLAN)
    own = asdict(plan)
    if not isinstance(there, dict) or set(there) != set(own):
        raise ValueError(f"{out / PLAN} was not written by sgfn: give --out another name")
    fields = {"n": "-n", "run": "RUN", "shard_size": size_flag}
    flags = [fields.get(name, f"--{name.replace('_', '-')}") for name in own if there[name] != own[name]]
    if flags:
        fix = "give --out another name, or add --overwrite to begin again"
        raise ValueError(f"{out} was begun with other values of {', '.join(flags)}: {fix}")


def whole_shard(out: Path, plan: ShardPlan, shard: int) -> bool:
    """Whether a shard is there with all its rows."""
    file = out / plan.name(shard)
    return file.is_file() and not file.is_symlink() and _row_count(file) == plan.rows(shard)


def _row_count(source: Path | io.BytesIO) -> int | None:
    """Rows of a Parquet file; None of anything else."""
    pa = import_pyarrow(Path("shards"))
    try:
        return pa.parquet.ParquetFile(source).metadata.num_rows
    except (pa.ArrowInvalid, OSError):
        return None


class _Taken:
    """Writes the shards that jobs draw, and counts."""

    def __init__(self, out: Path, plan: ShardPlan, missing: list[int], progress: Progress) -> None:
        self.out, self.plan, self.progress = out, plan, progress
        self.waiting = {plan.name(shard): shard for shard in missing}
        self.done = plan.n - sum(plan.rows(shard) for shard in missing)
        self.under_way: dict[str, int] = {}
        self.errors: list[str] = []

    def __call__(self, event: Event) -> None:
        """Take what is new of a shard."""
        if event.report is not None:
            self.under_way[event.name] = int(event.report)
        if event.lost or event.ended:
            self.under_way.pop(event.name, None)
        if event.ended and event.value is not None:
            self._write(event.name, event.value)
        elif event.ended:
            self.errors.append(error_words(event.error))
        self.progress(self.done + sum(self.under_way.values()))

    def _write(self, name: str, content: bytes) -> None:
        rows = self.plan.rows(self.waiting[name])
        if _row_count(io.BytesIO(content)) != rows:
            self.errors.append(f"{name} came back without its {rows:,} rows")
            return
        with replacing(self.out / name) as aside:
            aside.write_bytes(content)
        del self.waiting[name]
        self.done += rows

    def check(self, stop: Stop) -> None:
        """Raise unless all shards are there."""
        there, again = self.plan.count - len(self.waiting), f"the same command goes on in {self.out}"
        if self.waiting and stop.asked:
            raise KeyboardInterrupt(f"stopped with {there:,} of {self.plan.count:,} shards; {again}")
        if self.waiting:
            raise ValueError(f"{len(self.waiting):,} shards failed ({self.errors[0]}); {again}")


# On a node


def _argument(plan: ShardPlan, shard: int) -> Callable[[], dict[str, Any]]:
    return lambda: {"plan": asdict(plan), "shard": shard}


def _travelling(folder: Run, device: str) -> dict[str, Any]:
    """A run, and the modules that it names, as plain data for other machines."""
    found = shipment({}, folder.code().values())
    packed = pack_folder(folder.path, keep=lambda name: name in KEPT_OF_RUN or name.startswith(f"{DATA}/"))
    return {"run": packed, "sources": dict(found.sources), "device": device}


def draw_shard(argument: dict[str, Any], shared: "Model | dict[str, Any]", report: Report) -> bytes | None:
    """One shard as the bytes of its Parquet file; None where it was asked to stop."""
    plan, shard = ShardPlan(**argument["plan"]), argument["shard"]
    model = _arrived(plan.run, shared) if isinstance(shared, dict) else shared
    blocks = model.stream(plan.rows(shard), plan.temperature, plan.greedy, seed=plan.shard_seed(shard))
    with own_folder() as place:
        file, heard = place / "shard.parquet", _Heard(report)
        try:
            write_samples(model.env, blocks, file, heard, model.task.landscape)
        except _AskedToStop:
            return None
        return file.read_bytes()


class _AskedToStop(Exception):  # noqa: N818 -- says what happened
    """A shard was asked to stop."""


class _Heard:
    """Reports how far a shard is from time to time, and stops it when asked."""

    def __init__(self, report: Report) -> None:
        self.report, self.due = report, 0.0

    def __call__(self, done: int) -> None:
        """Told the number of samples."""
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + EVERY
            if self.report(done):
                raise _AskedToStop


ARRIVED: dict[str, Model] = {}
"""Models that this worker has opened, by the checksum of their weights."""


def _arrived(key: str, shared: dict[str, Any]) -> Model:
    """The model of a run that travelled here; whoever sent it has been asked whether it is to be trusted."""
    if key not in ARRIVED:
        place, _ = settled(Shipment(sources=shared["sources"]))
        (place / "run").mkdir()
        unpack_folder(shared["run"], place / "run")
        ARRIVED[key] = opened(Run(path=place / "run", trust=True), device_on_node(shared["device"]))
    return ARRIVED[key]
