"""`make report` on a new checkout: no .env, no root key, no export."""

from __future__ import annotations

from routemaster import dotenv


def test_what_only_reads_files_needs_no_root_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(dotenv.ROOT_KEY, raising=False)
    settings = dotenv.read_settings(needs_key=False)
    assert settings.export_url
    assert not (tmp_path / ".env").exists()
