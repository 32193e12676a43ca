"""A realm for tests: MIT Kerberos' key server on a free port of the loopback address, with all of its files in one directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from penstock.testing.processes import RunningProcess, free_port, start_process

REALM = "PENSTOCK.TEST"
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"


class KerberosRealm:
    """Use as a context. `environment` is for all who use it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.port = free_port()
        self.config = directory / "krb5.conf"
        self.config.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
        )
        (directory / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self.port}\n kdc_tcp_listen = 127.0.0.1:{self.port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {directory}/principal\n  key_stash_file = {directory}/stash\n"
            f"  acl_file = {directory}/acl\n }}\n[logging]\n kdc = FILE:{directory}/kdc.log\n"
        )
        self.environment = {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
            "KRB5RCACHENAME": f"dfl:{directory}/rcache",
            "KRB5CCNAME": f"FILE:{directory}/no-cache",
        }
        self.run("kdb5_util", "create", "-s", "-P", "master", "-r", REALM)
        self._server: RunningProcess | None = None

    def run(self, *command: str, **environment: str) -> str:
        program = shutil.which(command[0], path=_PATH)
        assert program is not None, f"{command[0]} is missing: run scripts/tests-setup"
        done = subprocess.run(
            [program, *command[1:]],
            env={**os.environ, **self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def keytab(self, name: str, *principals: str, options: Mapping[str, str] | None = None) -> Path:
        """Of principals that are made with it."""
        file = self.directory / f"{name}.keytab"
        for principal in principals:
            more = " ".join(f"-{key} {value}" for key, value in (options or {}).items())
            self.run("kadmin.local", "-q", f"addprinc -randkey {more} {principal}")
            self.run("kadmin.local", "-q", f"ktadd -k {file} {principal}")
        return file

    def ticket_cache(self, principal: str, keytab: Path, *, life: str = "1h") -> Path:
        file = self.directory / f"{principal}.cache"
        self.run("kinit", "-k", "-t", str(keytab), "-c", f"FILE:{file}", "-l", life, principal)
        return file

    def __enter__(self) -> KerberosRealm:
        program = shutil.which("krb5kdc", path=_PATH)
        assert program is not None, "krb5kdc is missing: run scripts/tests-setup"
        self._server = start_process(
            [program, "-n"],
            name="Kerberos' key server",
            log_path=self.directory / "krb5kdc.log",
            environment=self.environment,
        )
        self._server.wait_for_port(self.port)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.kill()
