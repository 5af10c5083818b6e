"""Functions and modules of a user's own that fail, end the process, or answer nonsense."""

from benchmarks.soak.outcomes import MARK
from benchmarks.soak.rows import Row, row

SHADOW = f"from pathlib import Path\nPath({MARK!r}).write_text('x')\n"

SHORT = "--callable.length 3"


def scored(name: str, body: str, *says: str, flags: str = "", head: str = "", **more: object) -> Row:
    """`train callable` with a function of one body."""
    code = f"{head}\ndef f(texts):\n    {body}\n"
    words = f"train callable --callable.function mine:f {SHORT} {flags} {{tiny}} --out run"
    more = {"leaves": True} | more
    return row(f"function: {name}", words, *says, files={"mine.py": code}, **more)


def module(name: str, code: str, *says: str, **more: object) -> Row:
    """`tasks callable` with a module that cannot be imported."""
    words = f"tasks callable --callable.function mine:f {SHORT}"
    return row(f"module: {name}", words, *says, files={"mine.py": code}, **more)


ANSWERS = [
    scored("raises", "raise KeyError('no such motif')", "mine:f", "KeyError", "no such motif"),
    scored("raises with line ends", "raise ValueError('a\\nb\\x1b[31m')", "mine:f", "ValueError"),
    scored("raises an error without a message", "raise RuntimeError", "mine:f", "RuntimeError"),
    scored("raises on one string", "return [1 / (t != 'AAA') for t in texts]", "'AAA'", "ZeroDivisionError"),
    scored("raises later", "n[0] += 1\n    assert n[0] < 2\n    return [1.0] * len(texts)", "mine:f", head="n = [0]"),
    scored("raises an error whose text fails", "raise E", "mine:f", "(E)",
           head="class E(Exception):\n    def __str__(self):\n        raise ValueError"),
    scored("recurses without end", "return f(texts)", "mine:f", "RecursionError"),
    scored("runs out of memory", "raise MemoryError", "mine:f"),
    scored("asserts", "assert False, 'never'", "mine:f", "AssertionError"),
    scored("stops iteration", "raise StopIteration", "mine:f", "StopIteration"),
    scored("is interrupted", "raise KeyboardInterrupt", ""),
    scored("ends the process", "import sys; sys.exit()", "mine:f"),
    scored("ends the process well", "import sys; sys.exit(0)", "mine:f"),
    scored("ends the process with words", "import sys; sys.exit('bye')", "mine:f"),
    scored("quits", "quit()", "mine:f"),
    scored("ends its generator", "raise GeneratorExit", "mine:f"),
    scored("raises what is no exception", "raise B", "mine:f", head="class B(BaseException): pass"),
    scored("is cancelled", "import asyncio; raise asyncio.CancelledError", "mine:f"),
    scored("warns as an error", "import warnings; warnings.simplefilter('error'); warnings.warn('x')", "mine:f"),
    scored("returns nothing", "return None", "mine:f", "NoneType"),
    scored("returns a number", "return 1.0", "mine:f"),
    scored("returns text", "return 'abc'", "mine:f", "str"),
    scored("returns a dictionary", "return {t: 1 for t in texts}", "mine:f", "dict"),
    scored("returns a generator", "return (1.0 for t in texts)", "mine:f", "generator"),
    scored("returns strings", "return ['high' for t in texts]", "mine:f", "'high'"),
    scored("returns nones", "return [None for t in texts]", "mine:f"),
    scored("returns too few", "return [1.0]", "mine:f", "1 scores"),
    scored("returns too many", "return [1.0] * (len(texts) + 1)", "mine:f"),
    scored("returns a matrix", "return [[1.0, 2.0] for t in texts]", "mine:f"),
    scored("returns ragged lists", "return [[1.0] * (i + 1) for i, t in enumerate(texts)]", "mine:f"),
    scored("returns nan", "return [float('nan')] * len(texts)", "mine:f", "nan"),
    scored("returns infinity", "return [float('inf')] * len(texts)", "mine:f", "inf"),
    scored("returns a negative number", "return [-1.0] * len(texts)", "mine:f", "-1", "max(0.0, score)"),
    scored("returns what float32 cannot hold", "return [1e300] * len(texts)", "mine:f", "float32"),
    scored("returns an integer beyond floats", "return [10**400] * len(texts)", "mine:f"),
    scored("returns an integer beyond words", "return [10**9999] * len(texts)", "mine:f", "int"),
    scored("returns what fails as a number", "return [X()] * len(texts)", "mine:f", head="class X:\n"
           "    def __float__(self): raise KeyError\n    def __repr__(self): raise KeyError"),
    scored("returns a tensor without numbers", "import torch; return torch.ones(len(texts), device='meta')", "mine:f"),
    scored("returns a sparse tensor", "import torch; return torch.ones(len(texts)).to_sparse()", "mine:f"),
    scored("takes standard output away", "import sys; sys.stdout = None; return [1.0] * len(texts)", code=0, talks=True),
    scored("returns complex numbers", "return [1j] * len(texts)", "mine:f"),
    scored("returns dates", "import datetime; return [datetime.date.today()] * len(texts)", "mine:f"),
    scored("returns a tensor of another length", "import torch; return torch.ones(1)", "mine:f"),
    scored("returns a tensor of bits", "import torch; return torch.ones(len(texts), 1)", "mine:f"),
    scored("changes its argument", "texts.clear(); return []", "mine:f"),
    scored("takes no argument", "pass", "mine:g", "TypeError", head="def g(): return 1",
           flags="--callable.function mine:g"),
    scored("is asked for by a wrong name", "return 1", "no h in", flags="--callable.function mine:h"),
    scored("is no function", "pass", "mine:x", "int", head="x = 3", flags="--callable.function mine:x"),
    scored("is a class that takes nothing", "pass", "mine:C", head="class C: pass", flags="--callable.function mine:C"),
    scored("is asked for without a module", "pass", "module:function", flags="--callable.function f"),
    scored("is asked for by a path", "pass", "mine.py:f", flags="--callable.function mine.py:f"),
    scored("is asked for with a call", "pass", "module:function", flags="--callable.function 'mine:f()'"),
    scored("has an alphabet of one letter", "return [1.0]", "callable.alphabet", flags="--callable.alphabet A"),
    scored("has a maximum below zero", "return [1.0]", "callable.maximum", flags="--callable.maximum -1"),
    scored("has a maximum of nan", "return [1.0]", "callable.maximum", flags="--callable.maximum nan"),
]

MODULES = [
    module("not there", "", "no f in", "mine.py"),
    module("with a syntax error", "def f(:\n", "mine.py, line 1"),
    module("with a wrong indentation", "def f(texts):\nreturn 1\n", "mine.py, line 2"),
    module("with a NUL", "def f(texts): return 1\0\n", "mine"),
    module("not UTF-8", "x = '\udcff'\n".encode("utf-8", "surrogateescape").decode("latin-1"), "mine"),
    module("that raises", "1 / 0\n", "importing mine failed", "ZeroDivisionError"),
    module("that needs another", "import no_such_thing\n", "no_such_thing", "not installed"),
    module("that needs a part that is not there", "from math import no_such_part\n", "no_such_part"),
    module("that imports itself", "from mine import f\n", "mine"),
    module("that ends the process", "import sys; sys.exit(0)\n", "mine"),
    module("that ends the process with words", "import sys; sys.exit('bye')\n", "mine"),
    module("that is interrupted", "raise KeyboardInterrupt\n", ""),
    module("that raises what is no exception", "class B(BaseException): pass\nraise B\n", "mine"),
    module("that recurses", "def g(): return g()\ng()\n", "mine", "RecursionError"),
    row("module: that is a folder", f"tasks callable --callable.function mine:f {SHORT}", "mine",
        files={"mine/x.py": "f = 1\n"}),
    row("module: that is private", f"tasks callable --callable.function _mine:_f {SHORT}", "_mine"),
    *[row(f"module: that needs {other}, which the current folder shadows", f"tasks callable --callable.function mine:f {SHORT}", code=0,
          files={"mine.py": f"import {other}\ndef f(texts): return [1.0] * len(texts)\n", f"{other}.py": SHADOW})
      for other in ("colorsys", "nbformat")],
    row("module: with a dash", f"tasks callable --callable.function my-module:f {SHORT}", "my-module:f"),
]


def named(name: str, flag: str, code: str, *says: str, task: str = "grid", **more: object) -> Row:
    """`train` with something of the user's in the place of a name."""
    words = f"train {task} {flag} {{bare}} --net.hidden 4 --out run"
    return row(f"own: {name}", words, *says, files={"mine.py": code}, **({"leaves": True} | more))


OWN = [
    named("objective that raises", "--objective mine:f", "def f(scores, batch): raise ValueError('no')\n", "no"),
    named("objective that raises a KeyError", "--objective mine:f", "def f(scores, batch): return {}['x']\n", "mine"),
    named("objective that ends the process", "--objective mine:f", "import sys\ndef f(s, b): sys.exit(0)\n", "mine"),
    named("objective that returns nothing", "--objective mine:f", "def f(scores, batch): pass\n", "mine"),
    named("objective that returns text", "--objective mine:f", "def f(s, b): return 'x'\n", "mine"),
    named("objective of a wrong shape", "--objective mine:f", "def f(s, b): return s.log_pf\n", "mine"),
    named("objective without a gradient", "--objective mine:f", "import torch\ndef f(s, b): return torch.ones(4)\n",
          "mine"),
    named("objective of nan", "--objective mine:f", "def f(s, b): return b.log_reward * s.log_pf.sum(1) * float('nan')\n",
          "finite"),
    named("objective of one argument", "--objective mine:f", "def f(scores): return 1\n", "mine"),
    named("objective that is a number", "--objective mine:f", "f = 3\n", "mine:f", "int"),
    named("noise that is a function of nothing", "--noise.kind mine:f", "def f(): return 1\n", "mine"),
    named("noise that is a number", "--noise.kind mine:f", "f = 3\n", "mine:f"),
    named("noise that returns no noise", "--noise.kind mine:f", "def f(config, letters, length): return 3\n", "mine:f",
          task="words"),
    named("encoder that is no module", "--net.encoder mine:f", "def f(env, config): return 3\n", "mine:f"),
    named("encoder that raises", "--net.encoder mine:f", "def f(env, config): raise ValueError('no')\n", "no"),
    named("method that is no learner", "--method mine:f", "class f: pass\n", "mine:f"),
    row("own: task that returns no task", "train mine:f {tiny}", "mine:f",
        files={"mine.py": "def f(name, config): return 3\n"}),
    row("own: task that raises", "train mine:f {tiny}", "no",
        files={"mine.py": "def f(name, config): raise ValueError('no')\n"}),
    row("own: task that ends the process", "tasks mine:f", "mine",
        files={"mine.py": "import sys\ndef f(name, config): sys.exit(0)\n"}),
    row("own: task of two arguments too few", "tasks mine:f", "mine",
        files={"mine.py": "def f(): return 1\n"}),
    row("own: method to compare that is not there", "compare grid --methods mine:g {tiny}", "mine",
        files={"mine.py": "def f(): return 1\n"}),
    row("own: function that a comparison cannot call",
        f"compare callable --callable.function mine:f {SHORT} --methods tb --seeds 1 {{tiny}}", "mine:f", "no such",
        files={"mine.py": "def f(texts): raise KeyError('no such')\n"}, leaves=True, talks=True),
    row("own: function that ends a comparison's worker",
        f"compare callable --callable.function mine:f {SHORT} --methods tb --seeds 1 {{tiny}}", "cells failed",
        files={"mine.py": "import sys\ndef f(texts): sys.exit(0)\n"}, leaves=True, talks=True),
    row("own: function that is built in", f"train callable --callable.function builtins:len {SHORT} {{tiny}} --out run",
        "builtins:len", leaves=True),
    row("own: tilt that is not there", "forecast s.csv --tilt mine:g {short}", "mine",
        files={"mine.py": "def f(paths): return 1\n", "s.csv": "ds,y\n2024-01-01,1\n"}),
]

TILTS = {
    "raises": ("raise KeyError('no')", "KeyError"),
    "returns a number": ("return 1.0", "one number for each"),
    "returns nan": ("return [float('nan')] * len(paths)", "finite"),
    "returns strings": ("return ['x'] * len(paths)", "mine:f"),
    "returns nothing": ("return None", "mine:f"),
    "returns a matrix": ("return paths", "one number for each"),
    "ends the process": ("import sys; sys.exit(0)", "mine:f"),
    "is interrupted": ("raise KeyboardInterrupt", ""),
}
SERIES = "ds,y\n" + "".join(f"2024-01-{day:02},{day * 7 % 5}\n" for day in range(1, 31))

ROWS = [
    *ANSWERS,
    *MODULES,
    *OWN,
    *[
        row(f"tilt: {name}", "forecast s.csv --tilt mine:f {short}", says, talks=True,
            files={"mine.py": f"def f(paths):\n    {body}\n", "s.csv": SERIES})
        for name, (body, says) in TILTS.items()
    ],
]
