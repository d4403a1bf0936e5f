"""dbt-postgres runs a project with materialized views on a server, and runs it again."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psycopg
import pytest

from serving import server_process

DBT = Path(os.environ.get("EVERVIEW_CONNECTORS") or Path(__file__).parents[2] / ".connectors") / "dbt" / "bin" / "dbt"
PROJECT = {
    "dbt_project.yml": """
name: shop
version: "1.0"
profile: shop
flags: {send_anonymous_usage_stats: false}
""",
    "profiles.yml": """
shop:
  target: dev
  outputs:
    dev:
      {type: postgres, host: 127.0.0.1, port: PORT, user: ada, password: x, dbname: everview, schema: public}
""",
    "models/totals.sql": """
{{ config(materialized='materialized_view') }}
SELECT name, sum(amount) AS total FROM public.sale GROUP BY name
""",
    "models/largest.sql": """
{{ config(materialized='materialized_view') }}
SELECT max(total) AS most FROM {{ ref('totals') }}
""",
}


@pytest.mark.slow
def test_a_project_with_materialized_views(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "made.sql").write_text("CREATE TABLE sale (id BIGINT PRIMARY KEY, name STRING, amount BIGINT)")
    with server_process(tmp_path / "made.sql", "--port", 0) as (_, _, port):
        for name, text in PROJECT.items():
            (tmp_path / name).write_text(text.replace("PORT", str(port)))
        assert ran(tmp_path).count("CREATE MATERIALIZED VIEW") == 2
        with psycopg.connect(f"host=127.0.0.1 port={port} user=ada", autocommit=True) as client:
            client.execute("INSERT INTO sale VALUES (1, 'a', 5), (2, 'a', 7), (3, 'b', 9)")
            assert client.execute("SELECT most FROM largest").fetchall() == [(12,)]
            assert ran(tmp_path).count("REFRESH MATERIALIZED VIEW") == 2
            assert client.execute("SELECT most FROM largest").fetchall() == [(12,)]


def ran(project):
    """What dbt says of a run of a project."""
    command = [DBT, "--no-use-colors", "run", "--project-dir", project, "--profiles-dir", project]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
