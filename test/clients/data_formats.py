"""data_formats.py DIR OTHER: HDF5, zarr, LMDB and mapped arrays in DIR; OTHER is another mount of it, which reads them
and changes them, too."""
import multiprocessing
import os
import random
import subprocess
import sys

import h5py
import lmdb
import numpy
import zarr

mount, other = sys.argv[1:3]


def at(directory, name):
    return os.path.join(directory, name)


def start(function, *arguments):
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    process.start()
    return process


def end(processes):
    """Waits for them; their failure is this one's."""
    for process in processes:
        process.join()
        assert process.exitcode == 0, f"{process}"


def in_process(function, *arguments):
    end([start(function, *arguments)])


# ---- HDF5: small writes all over a file, and its locks ----

IMAGES = numpy.random.default_rng(1).integers(0, 255, (200, 64, 64), dtype=numpy.uint8)


def hdf5_append(path, first, last):
    with h5py.File(path, "a") as file:
        images = file.require_dataset("images", IMAGES.shape, IMAGES.dtype, chunks=(7, 64, 64), compression="gzip")
        for i in range(first, last):
            images[i] = IMAGES[i]
        file.attrs["last"] = last


def hdf5_check(path, count):
    with h5py.File(path, "r") as file:
        assert file.attrs["last"] == count
        assert (file["images"][:count] == IMAGES[:count]).all()


def hdf5():
    for first in range(0, 200, 50):
        writer, reader = (mount, other) if first % 100 == 0 else (other, mount)
        in_process(hdf5_append, at(writer, "images.h5"), first, first + 50)
        in_process(hdf5_check, at(reader, "images.h5"), first + 50)
    with h5py.File(at(mount, "images.h5"), "r+"):
        # A fresh process: the library knows what it, or who forked it, has open.
        opens = subprocess.run([sys.executable, "-c", "import h5py, sys; h5py.File(sys.argv[1], 'r+')",
                                at(other, "images.h5")], capture_output=True, text=True)
        assert "unable to lock file" in opens.stderr, "HDF5's lock does not keep the other mount out"


# ---- zarr: a file per chunk, replaced by renames ----

def zarr_fill(path, rows):  # no chunk is of two processes
    array = zarr.open(path, mode="a", shape=(120, 300), chunks=(10, 50), dtype="f4")
    for row in rows:
        array[row] = numpy.arange(300, dtype="f4") * row


def zarr_chunks():
    path = at(mount, "weights.zarr")
    zarr.open(path, mode="w", shape=(120, 300), chunks=(10, 50), dtype="f4")
    end([start(zarr_fill, at([mount, other][i % 2], "weights.zarr"), range(i * 30, (i + 1) * 30)) for i in range(4)])
    expected = numpy.outer(numpy.arange(120), numpy.arange(300)).astype("f4")
    for directory in mount, other:
        assert (zarr.open(at(directory, "weights.zarr"), mode="r")[:] == expected).all()


# ---- LMDB: reads through a mapping what is written with pwrite ----

def lmdb_put(path, batch):
    with lmdb.open(path, map_size=1 << 28) as env, env.begin(write=True) as txn:
        for i in range(batch * 500, (batch + 1) * 500):
            assert txn.put(b"%08d" % i, random.Random(i).randbytes(random.Random(i).randrange(1, 3000)))


def lmdb_check(path, batches):
    with lmdb.open(path, map_size=1 << 28, readonly=True) as env, env.begin() as txn:
        assert txn.stat()["entries"] == batches * 500
        for i in range(batches * 500):
            assert txn.get(b"%08d" % i) == random.Random(i).randbytes(random.Random(i).randrange(1, 3000)), i


def lmdb_batches():
    with lmdb.open(at(mount, "samples.lmdb"), map_size=1 << 28) as env:  # its mapping is there all the time
        for batch in range(5):
            in_process(lmdb_put, at(mount, "samples.lmdb"), batch)
            with env.begin() as txn:
                assert txn.stat()["entries"] == (batch + 1) * 500
    for batch in range(5, 10):
        in_process(lmdb_put, at([mount, other][batch % 2], "samples.lmdb"), batch)
        in_process(lmdb_check, at([other, mount][batch % 2], "samples.lmdb"), batch + 1)


def lmdb_writemap():
    path = at(mount, "mapped.lmdb")
    with lmdb.open(path, map_size=1 << 24, writemap=True) as env:
        for batch in range(20):
            with env.begin(write=True) as txn:
                for i in range(batch * 50, (batch + 1) * 50):
                    txn.put(b"%08d" % i, b"v" * i)
    for directory in mount, other:
        with lmdb.open(at(directory, "mapped.lmdb"), map_size=1 << 24, readonly=True, lock=False) as env, env.begin() as txn:
            assert all(txn.get(b"%08d" % i) == b"v" * i for i in range(1000))


# ---- numpy: one mapping, several workers ----

def fill(path, part, parts):
    array = numpy.lib.format.open_memmap(path, mode="r+")
    size = len(array) // parts
    array[part * size:(part + 1) * size] = numpy.arange(part * size, (part + 1) * size)
    array.flush()


def mapped_array():
    path = at(mount, "tokens.npy")
    array = numpy.lib.format.open_memmap(path, mode="w+", dtype="i8", shape=(1_000_003,))
    del array
    end([start(fill, path, part, 4) for part in range(4)])
    for directory in mount, other:
        array = numpy.load(at(directory, "tokens.npy"), mmap_mode="r")
        assert (array[:1_000_000] == numpy.arange(1_000_000)).all() and (array[1_000_000:] == 0).all(), directory


for step in hdf5, zarr_chunks, lmdb_batches, lmdb_writemap, mapped_array:
    step()
    print(step.__name__, "ok", flush=True)
