import os

from remeasure import timing

HEADER = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"


def write(folder, name, wall, rss, cpu, age_s=0.0):
    path = folder / "logs" / f"{name}.benchmark.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEADER + f"{wall}\t0:00:01\t{rss}\t1\t1\t1\t0\t0\t0\t{cpu}\n")
    os.utime(path, (1000 - age_s, 1000 - age_s))


def test_jobs_of_a_rule_are_summed_and_older_ones_are_left_out(tmp_path):
    write(tmp_path / "a", "ask", 2.0, 100.0, 1.0)
    write(tmp_path / "b", "ask", 3.0, 50.0, 2.5)
    write(tmp_path / "c", "ask", 90.0, 50.0, 2.5, age_s=500)
    write(tmp_path / "a", "grade", 0.5, "NA", "NA")
    assert timing.costs(tmp_path, since=900) == [
        timing.Cost("ask", 2, 5.0, 3.5, 100.0),
        timing.Cost("grade", 1, 0.5, 0.0, 0.0),
    ]


def test_sources_that_were_made_again_beside_kept_tables_ask_for_a_second_call(tmp_path, capsys):
    (tmp_path / "sources" / "logs").mkdir(parents=True)
    (tmp_path / "ci" / "tables").mkdir(parents=True)
    made = tmp_path / "sources" / "logs" / "write_factbook.benchmark.tsv"
    table = tmp_path / "ci" / "tables" / "table1.csv"
    for path, when in ((made, 200), (table, 100)):
        path.write_text("")
        os.utime(path, (when, when))
    timing.note_on_sources(str(tmp_path), 150)
    assert "run the command once more" in capsys.readouterr().err
    timing.note_on_sources(str(tmp_path), 250)  # nothing was made in this call
    os.utime(table, (201, 201))
    timing.note_on_sources(str(tmp_path), 150)  # everything was made in this call
    assert capsys.readouterr().err == ""
