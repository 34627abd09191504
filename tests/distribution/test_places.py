"""The place of a process, from the variables of each launcher."""

import pytest

from keras_transformer.distribution.places import PORT, Place, place_in

KERAS = {
    "KERAS_DISTRIBUTION_PROCESS_ID": "1",
    "KERAS_DISTRIBUTION_NUM_PROCESSES": "2",
    "KERAS_DISTRIBUTION_JOB_ADDRESSES": "10.0.0.1:1234,10.0.0.2:2345",
}
TORCHRUN = dict(RANK="3", WORLD_SIZE="4", MASTER_ADDR="node1", MASTER_PORT="500", LOCAL_RANK="1")
SLURM = dict(SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="8", SLURM_STEP_NODELIST="gpu[03-05,9],x")
KUBERNETES = {
    "JOB_COMPLETION_INDEX": "5",
    "KERAS_DISTRIBUTION_NUM_PROCESSES": "6",
    "KERAS_DISTRIBUTION_JOB_ADDRESSES": "train-0.train",
}


@pytest.mark.parametrize(
    "environ,place",
    [
        ({}, Place()),
        (KERAS, Place(1, 2, "10.0.0.1:1234")),
        (TORCHRUN, Place(3, 4, "node1:501", 1)),
        (KERAS | TORCHRUN, Place(1, 2, "10.0.0.1:1234", 1)),
        (SLURM, Place(0, 8, f"gpu03:{PORT}")),
        (SLURM | dict(SLURM_STEP_NODELIST="a,b", SLURM_LOCALID="2"), Place(0, 8, f"a:{PORT}", 2)),
        (KUBERNETES, Place(5, 6, f"train-0.train:{PORT}")),
        (dict(SLURM_PROCID="0", SLURM_STEP_NUM_TASKS="1"), Place()),
        (dict(SLURM_PROCID="0", SLURM_NTASKS="8", SLURM_JOB_NODELIST="a"), Place()),  # no step
    ],
)
def test_the_place(environ, place):
    assert place_in(environ) == place


@pytest.mark.parametrize(
    "environ,message",
    [
        (TORCHRUN | dict(RANK="4"), "process index must be from 0 to 3, got 4"),
        (TORCHRUN | dict(RANK="x"), "RANK must be a whole number of at least 0, got 'x'"),
        (TORCHRUN | dict(MASTER_ADDR=""), "MASTER_ADDR must be set, as WORLD_SIZE is"),
        (dict(WORLD_SIZE="4"), "RANK must be set, as WORLD_SIZE is"),
        (TORCHRUN | dict(WORLD_SIZE="0"), "number of processes must be at least 1, got 0"),
    ],
)
def test_variables_that_cannot_be(environ, message):
    with pytest.raises(ValueError, match=message):
        place_in(environ)
