"""All verbs. They are stages, so ``--help`` is the architecture."""

from __future__ import annotations

import click

from kernel_builder.cli.build import build
from kernel_builder.cli.check import check
from kernel_builder.cli.completion import completion
from kernel_builder.cli.doctor import doctor
from kernel_builder.cli.explain import explain
from kernel_builder.cli.init import init
from kernel_builder.cli.options import GROUP_EPILOG, Ordered
from kernel_builder.cli.plan import plan
from kernel_builder.cli.publish import publish
from kernel_builder.cli.store import store
from kernel_builder.cli.test import test
from kernel_builder.cli.toolchain import toolchain
from kernel_builder.package.provenance import builder_version


@click.group(cls=Ordered, epilog=GROUP_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(builder_version(), prog_name="kernel-builder")
def commands() -> None:
    """Build CUDA kernels into a matrix of torch × CUDA variants with pip alone."""


for verb in (init, plan, build, check, test, publish, explain, doctor, toolchain, store, completion):
    commands.add_command(verb)
