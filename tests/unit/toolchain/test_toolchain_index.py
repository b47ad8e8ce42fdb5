"""Wheels are looked for where pip is configured to look."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from wheel_server import FILES, NAME, locked_wheel, wheel_bytes

from kernel_builder.errors import ToolchainError
from kernel_builder.toolchain.fetch import take
from kernel_builder.toolchain.index.places import Index
from kernel_builder.toolchain.index.session import redacted
from kernel_builder.toolchain.pip_settings import PipSettings

GOOD = wheel_bytes(FILES)


@pytest.fixture
def folder(tmp_path):
    """A folder with the wheel in it."""
    links = tmp_path / "links"
    links.mkdir()
    (links / NAME).write_bytes(GOOD)
    return links


def simple_index(root, wheels) -> None:
    (root / "simple/headers").mkdir(parents=True)
    (root / "simple/headers/index.html").write_text(f'<a href="../../{wheels.name}/{NAME}">{NAME}</a>')


@pytest.mark.parametrize("spelling", ["path", "file-url", "html-page", "index-url", "index-path"])
def test_places_on_this_machine_need_no_network(spelling, folder, tmp_path, recorder) -> None:
    simple_index(tmp_path, folder)
    (tmp_path / "page.html").write_text(f'<a href="links/{NAME}">any text</a>')
    settings = {
        "path": PipSettings(find_links=(str(folder),), no_index=True),
        "file-url": PipSettings(find_links=(folder.as_uri(),), no_index=True),
        "html-page": PipSettings(find_links=((tmp_path / "page.html").as_uri(),), no_index=True),
        "index-url": PipSettings(index_url=(tmp_path / "simple").as_uri()),
        "index-path": PipSettings(index_url=str(tmp_path / "simple")),
    }[spelling]
    index = Index(settings, recorder)
    assert take(locked_wheel(GOOD), index, tmp_path / "out", recorder)
    assert index.received == 0


def test_no_index_asks_no_index(server, tmp_path, recorder) -> None:
    server.script.wheels[NAME] = GOOD
    index = Index(PipSettings(index_url=server.simple, no_index=True), recorder)
    with pytest.raises(ToolchainError):
        take(locked_wheel(GOOD), index, tmp_path, recorder)
    assert server.script.requests == []


def test_near_places_are_asked_before_the_network(server, folder, tmp_path, recorder) -> None:
    index = Index(
        PipSettings(index_url=server.simple, extra_index_urls=(str(tmp_path),), find_links=(str(folder),)), recorder
    )
    take(locked_wheel(GOOD), index, tmp_path / "out", recorder)
    assert server.script.requests == []


def test_a_page_of_links_on_a_server_works(server, tmp_path, recorder) -> None:
    server.script.wheels[NAME] = GOOD
    index = Index(PipSettings(find_links=(f"{server.url}/links.html",), no_index=True), recorder)
    assert take(locked_wheel(GOOD), index, tmp_path, recorder)


def test_extra_indexes_are_asked_when_the_first_is_down(server, tmp_path, recorder) -> None:
    server.script.wheels[NAME] = GOOD
    settings = PipSettings(index_url="http://127.0.0.1:9/simple", extra_index_urls=(server.simple,), retries=0)
    index = Index(settings, recorder)
    assert take(locked_wheel(GOOD), index, tmp_path, recorder)
    assert len(index.failures) == 1
    assert index.failures[0].startswith("http://127.0.0.1:9/simple: ")


def test_credentials_of_the_index_go_to_its_files_and_into_no_message(server, tmp_path, recorder) -> None:
    server.script.wheels[NAME] = GOOD
    url = server.simple.replace("http://", "http://me:s%40cret@")
    take(locked_wheel(GOOD), Index(PipSettings(index_url=url), recorder), tmp_path, recorder)
    expected = "Basic " + base64.b64encode(b"me:s@cret").decode()
    assert {authorization for _, _, authorization in server.script.requests} == {expected}
    with pytest.raises(ToolchainError) as caught:
        take(
            replace(locked_wheel(GOOD), project="other"),
            Index(PipSettings(index_url=url), recorder),
            tmp_path,
            recorder,
        )
    assert "s%40cret" not in caught.value.detail + caught.value.hint + caught.value.message
    assert redacted(url) == server.simple


def test_netrc_is_honoured(server, tmp_path, recorder, monkeypatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login you password word\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    server.script.wheels[NAME] = GOOD
    take(locked_wheel(GOOD), Index(PipSettings(index_url=server.simple), recorder), tmp_path, recorder)
    assert server.script.requests[-1][2] == "Basic " + base64.b64encode(b"you:word").decode()


def test_the_proxy_of_pip_wins_over_the_environment(server, tmp_path, recorder, monkeypatch) -> None:
    monkeypatch.delenv("NO_PROXY")
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    index = Index(PipSettings(index_url="http://index.invalid/simple", proxy=server.url, retries=0), recorder)
    with pytest.raises(ToolchainError):
        take(locked_wheel(GOOD), index, tmp_path, recorder)
    assert server.script.requests[0][0] == "http://index.invalid/simple/headers/"


def test_a_network_page_cannot_name_files_of_this_machine(server, folder, tmp_path, recorder) -> None:
    server.script.wheels[NAME] = GOOD
    page = f'<a href="{(folder / NAME).as_uri()}">{NAME}</a>'
    server.script.page = page.encode()
    assert list(Index(PipSettings(index_url=server.simple), recorder).files("headers")) == []


def test_a_local_wheel_of_another_size_is_passed_over(server, folder, tmp_path, recorder) -> None:
    (folder / NAME).write_bytes(GOOD + b"more")
    server.script.wheels[NAME] = GOOD
    index = Index(PipSettings(index_url=server.simple, find_links=(str(folder),)), recorder)
    take(locked_wheel(GOOD), index, tmp_path / "out", recorder)
    assert index.received > 0
