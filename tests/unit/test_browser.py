import os
import stat

import pytest

from remeasure import browser
from remeasure.errors import RemeasureError


def program(folder, name, words):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{words}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_version_is_taken_from_what_the_program_says(tmp_path):
    path = program(tmp_path, "chromium", "echo 'Chromium 156.0.8078.108 built on Debian'; echo noise >&2")
    assert browser.version(path) == "156.0.8078.108"


def test_a_program_that_is_no_browser_is_an_error_with_the_installing_command(tmp_path):
    path = program(tmp_path, "chromium", "echo 'command not found: snap' >&2; exit 1")
    with pytest.raises(RemeasureError, match=r"found 'command not found: snap'.*apt-get install chromium"):
        browser.version(path)


def test_the_usual_names_are_looked_for_in_order(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RemeasureError, match="no Chromium found .*apt-get install chromium"):
        browser.find_browser(None)
    program(tmp_path, "google-chrome", "true")
    assert browser.find_browser(None) == tmp_path / "google-chrome"
    program(tmp_path, "chromium", "true")
    assert browser.find_browser(None) == tmp_path / "chromium"


def test_a_named_program_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(RemeasureError, match="nothing: no such program"):
        browser.find_browser(tmp_path / "nothing")


def test_fonts_are_counted_and_hashed_whatever_order_they_are_listed_in(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path, "fc-list", "printf 'b|Bold|2|B\\na|Book|1|A\\n'")
    first = browser.fonts()
    program(tmp_path, "fc-list", "printf 'a|Book|1|A\\nb|Bold|2|B\\n'")
    assert first == browser.fonts()
    assert first.count == 2


def test_without_fontconfig_nothing_is_claimed_about_fonts(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert browser.fonts().as_facts() == {"count": None, "sha256": None}


def test_the_sandbox_is_never_tried_as_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert browser.use_sandbox("auto") is False
    assert browser.use_sandbox("true") is True
    assert browser.use_sandbox("false") is False


def test_the_sandbox_stays_on_for_a_user_whose_system_allows_it(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(browser, "_reads", lambda path, expected: False)
    assert browser.use_sandbox("auto") is True


def test_flags_lead_every_name_to_the_page_server_or_nowhere():
    flags = browser.launch_flags(4711, sandbox=True)
    assert "--host-resolver-rules=MAP *.pages.test:80 127.0.0.1:4711 , MAP * ~NOTFOUND" in flags
    assert "--no-proxy-server" in flags
    assert "--no-sandbox" not in flags
    assert "--no-sandbox" in browser.launch_flags(None, sandbox=False)
