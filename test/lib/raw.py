"""Speaks to the ports of a cluster as no client does: raw bytes, and bulk frames that are legal, or not quite.

Numbers of the frame format are taken from include/trainfs/bulk.h; the sums from libxxhash.
"""
import contextlib
import ctypes
import http.client
import json
import os
import re
import select
import socket
import struct
import subprocess
import time

ROOT = os.environ["ROOT"]
HEADER = struct.Struct("<IHBBQQQIIIIHHHHII")
EXTENT = struct.Struct("<16sQIIQ")
HELLO, READ, WRITE, PUNCH = range(1, 5)
SYNC, STAT = 6, 7

with open(f"{ROOT}/include/trainfs/bulk.h") as file:
    _text = file.read()
MAGIC = int(re.search(r"kBulkMagic = (0x[0-9a-f]+)", _text)[1], 16)
VERSION = int(re.search(r"kBulkVersion = (\d+)", _text)[1])
SCRAPE_SECONDS = 10  # after which Prometheus gives up

_xxhash = ctypes.CDLL("libxxhash.so.0")
_xxhash.XXH3_64bits.restype = ctypes.c_uint64
_xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def xxh3(data):
    return _xxhash.XXH3_64bits(data, len(data))


def object_id(inode, generation=1, component=0, stripe=0):
    return struct.pack(">QI", inode, generation) + bytes([component]) + stripe.to_bytes(3, "big")


def worker_of(object, workers):
    return xxh3(object) % workers


def extent(object, offset=0, length=0, flags=0):
    return EXTENT.pack(object, offset, length, flags, 0)


def frame(op, extents=(), sums=(), payload=b"", *, request=1, session=0, epoch=0, chain=0, chain_version=1, lane=0,
          **wrong):
    """A frame with its head's sum. `wrong` sets fields to something else: payload_bytes, extent_count, sum_count,
    magic, version, status, flags, error_code, reserved, sum."""
    tail = b"".join(extents) + b"".join(struct.pack("<Q", sum) for sum in sums)

    def header(sum):
        return HEADER.pack(
            wrong.get("magic", MAGIC), wrong.get("version", VERSION), op, wrong.get("status", 0), sum, request,
            session, epoch, chain, chain_version, wrong.get("payload_bytes", len(payload)), wrong.get("flags", 0),
            wrong.get("extent_count", len(extents)), wrong.get("sum_count", len(sums)), wrong.get("error_code", 0),
            lane, wrong.get("reserved", 0))
    return header(wrong.get("sum", xxh3(header(0) + tail))) + tail + payload


def write_frame(object, offset, data, **more):
    """Within one block of 64 KiB."""
    return frame(WRITE, [extent(object, offset, len(data))], [xxh3(data)], data, **more)


class Peer:
    """One TCP connection. Everything that waits has a limit in seconds."""

    def __init__(self, port, seconds=20):
        self.socket = socket.create_connection(("127.0.0.1", port), seconds)

    def send(self, data):
        """False: the other end has closed it."""
        try:
            self.socket.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def receive(self, count):
        data = b""
        while len(data) < count:
            some = self.socket.recv(count - len(data))
            if not some:
                raise EOFError(f"closed after {len(data)} of {count} bytes")
            data += some
        return data

    def reply(self):
        """(op, status, error code, request, payload) of the next frame."""
        fields = HEADER.unpack(self.receive(HEADER.size))
        self.receive(fields[12] * EXTENT.size + fields[13] * 8)
        return fields[2], fields[3], fields[14], fields[5], self.receive(fields[10])

    def is_cut(self, seconds):
        """The server closes the connection within that time, whatever it says before."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.socket], [], [], left)[0]:
                return False
            try:
                if not self.socket.recv(1 << 16):
                    return True
            except ConnectionResetError:
                return True
        return False

    def close(self):
        self.socket.close()


class Cluster:
    """What minicluster knows about a running cluster."""

    def __init__(self, directory):
        self.dir = directory
        with open(f"{directory}/minicluster.json") as file:
            self.nodes = json.load(file)["nodes"]

    def ports(self):
        """(name, port) of every port for RPC and data."""
        for name, node in self.nodes.items():
            for number in range(node.get("workers", 1)):
                if "port" in node:
                    yield f"{name} port {number}", node["port"] + number

    def metrics_ports(self):
        """(name, port) of every port at which Prometheus is answered."""
        for name, node in self.nodes.items():
            if "metrics" in node:
                yield f"{name} metrics", node["metrics"]

    def data_port(self, ost, object):
        node = self.nodes[ost]
        return node["port"] + worker_of(object, node["workers"])

    def pid(self, name):
        with open(f"{self.dir}/run/{name}") as file:
            return int(file.read().split()[0])

    def resident(self, name):
        """Bytes of memory that a daemon has."""
        with open(f"/proc/{self.pid(name)}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self, name):
        return len(os.listdir(f"/proc/{self.pid(name)}/fd"))


def scrape(port):
    """Prometheus gets its page."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SCRAPE_SECONDS)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics")
        reply = connection.getresponse()
        page = reply.read().decode()
    check(reply.status == 200 and "trainfs_" in page, f"a scrape was answered with {reply.status}: {page[:80]}")


def until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"FAILED: not within {seconds} seconds: {what}")
        time.sleep(0.05)


def check(condition, what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")
