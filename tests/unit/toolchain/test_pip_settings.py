"""pip's own configuration is understood as pip prints it."""

from __future__ import annotations

import os

import pytest

from kernel_builder.errors import ToolchainError
from kernel_builder.toolchain.pip_settings import PipSettings, parse_pip_settings, read_pip_settings

LISTING = r"""
:env:.default-timeout='180'
:env:.find-links='/links  https://example.invalid/links.html'
download.no-index='true'
global.cert='/etc/ca.pem'
global.client-cert='/etc/me.pem'
global.extra-index-url='\nfile:///a/simple\nfile:///b/simple'
global.find-links='/overridden'
global.index-url='https://user:pass@example.invalid/simple'
global.proxy='http://proxy.invalid:3128'
global.trusted-host='one.invalid two.invalid:8443'
install.find-links='/for-install-only'
"""


def test_files_and_variables_are_merged_as_pip_does() -> None:
    assert parse_pip_settings(LISTING) == PipSettings(
        index_url="https://user:pass@example.invalid/simple",
        extra_index_urls=("file:///a/simple", "file:///b/simple"),
        find_links=("/links", "https://example.invalid/links.html"),
        no_index=True,
        proxy="http://proxy.invalid:3128",
        cert="/etc/ca.pem",
        client_cert="/etc/me.pem",
        trusted_hosts=("one.invalid", "two.invalid:8443"),
        timeout=180.0,
        retries=5,
    )


def test_no_configuration_means_the_defaults() -> None:
    assert parse_pip_settings("") == PipSettings()


def test_a_number_that_is_none_is_named() -> None:
    with pytest.raises(ToolchainError, match="option timeout is not a number: 'soon'"):
        parse_pip_settings("global.timeout='soon'\n")


def test_pip_itself_is_asked(tmp_path, monkeypatch, recorder) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nextra-index-url =\n    file:///one\n    file:///two\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    settings = read_pip_settings(os.defpath, recorder)
    assert settings.index_url == "http://127.0.0.1:9/simple"
    assert settings.extra_index_urls == ("file:///one", "file:///two")


def test_a_broken_configuration_is_reported_in_pips_words(tmp_path, monkeypatch, recorder) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("no section\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    with pytest.raises(ToolchainError, match="pip cannot read its own configuration") as caught:
        read_pip_settings(os.defpath, recorder)
    assert "pip.conf" in caught.value.detail
