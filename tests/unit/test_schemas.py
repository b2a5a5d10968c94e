import write_schemas


def test_the_schemas_in_config_are_those_of_the_record_types():
    assert write_schemas.main(["--check"]) == 0
