"""The faults of `mutations.py` fit the present source, so that they can be tried at any time."""

import ast

import pytest
from mutations import AREAS, FAULTS, ROOT


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.breaks)
def test_a_fault_fits_the_source_in_one_place(fault):
    source = (ROOT / "marrakech_env" / fault.file).read_text(encoding="utf-8")
    assert source.count(fault.old) == 1
    assert fault.new != fault.old
    ast.parse(source.replace(fault.old, fault.new))


def test_the_tests_of_every_area_exist():
    assert {fault.area for fault in FAULTS} == set(AREAS)
    for names in AREAS.values():
        assert all((ROOT / "tests" / f"test_{name}.py").exists() for name in names.split())
    assert len(FAULTS) >= 30
