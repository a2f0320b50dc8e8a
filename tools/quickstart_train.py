#!/usr/bin/python3
"""Trains a small byte-level language model over the text below MOUNT/corpus: what `quickstart` runs.

An ordinary PyTorch program that knows nothing of trainfs. Its DataLoader has 4 worker processes; half of the
samples are read from the many small files with open/seek/read, half from one packed file through mmap.
"""
import argparse
import mmap
import os
import sys
import time
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

WINDOW = 128     # bytes that the model sees at once
BATCH = 32
WORKERS = 4
TICK_SECONDS = 1 if sys.stderr.isatty() else 10  # between two looks at a progress bar
READ_BYTES = 64 * 1024  # read per sample, as a tokenizing loader would; one window of it is trained on


def pack(files, packed):
    """All files in one: what a training run memory-maps. Kept when it has the right size already."""
    total = sum(os.path.getsize(path) for path in files)
    if os.path.exists(packed) and os.path.getsize(packed) == total:
        return
    with open(packed + ".new", "wb") as out:
        for path in tqdm(files, desc="packing", unit=" files", delay=1, mininterval=TICK_SECONDS):
            with open(path, "rb") as file:
                out.write(file.read())
        out.flush()
        os.fsync(out.fileno())
    os.rename(packed + ".new", packed)


class Windows(Dataset):
    """Sample i: WINDOW + 1 bytes of text and how many bytes were read to get them."""

    def __init__(self, files, packed, samples):
        self.files, self.packed, self.samples = files, packed, samples
        self.packed_size = os.path.getsize(packed)
        self.mapped = None  # opened in each worker

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        random = torch.Generator().manual_seed(index)
        pick = lambda below: int(torch.randint(max(below, 1), (1,), generator=random))
        data = self.from_map(pick) if index % 2 else self.from_file(pick)
        at = pick(len(data) - WINDOW - 1)
        window = data[at:at + WINDOW + 1].ljust(WINDOW + 1, b"\n")
        return torch.tensor(list(window)), len(data)

    def from_file(self, pick):
        with open(self.files[pick(len(self.files))], "rb", buffering=0) as file:
            file.seek(pick(os.fstat(file.fileno()).st_size - READ_BYTES))
            return file.read(READ_BYTES)

    def from_map(self, pick):
        if self.mapped is None:
            with open(self.packed, "rb") as file:
                self.mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        at = pick(self.packed_size - READ_BYTES)
        return self.mapped[at:at + READ_BYTES]


class ByteModel(nn.Module):
    """Two causal convolutions: sees the last 16 bytes, predicts the next."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(256, 64)
        self.near = nn.Conv1d(64, 128, kernel_size=4)
        self.far = nn.Conv1d(128, 128, kernel_size=4, dilation=4)
        self.head = nn.Linear(128, 256)

    def forward(self, text):
        hidden = self.embed(text[:, :-1]).transpose(1, 2)
        for layer, reach in ((self.near, 3), (self.far, 12)):
            hidden = torch.relu(layer(nn.functional.pad(hidden, (reach, 0))))
        return nn.functional.cross_entropy(self.head(hidden.transpose(1, 2)).flatten(0, 1), text[:, 1:].flatten())


def train(model, data, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses, read, started = [], 0, time.monotonic()
    bar = tqdm(DataLoader(data, batch_size=BATCH, num_workers=WORKERS), total=steps, desc="training",
               unit=" steps", mininterval=TICK_SECONDS)
    for text, sizes in bar:
        loss = model(text)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        read += int(sizes.sum())
        bar.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
    seconds = time.monotonic() - started
    tenth = max(1, steps // 10)
    mean = lambda part: sum(part) / len(part)
    first, last = mean(losses[:tenth]), mean(losses[-tenth:])
    print("loss: " + "  ".join(f"{mean(losses[i:i + tenth]):.3f}" for i in range(0, steps - tenth + 1, tenth)))
    print(f"{steps} steps in {seconds:.1f} s, {read / 1e6:.0f} MB read by {WORKERS} workers while training")
    if not last < first:
        sys.exit(f"the loss did not fall: {first:.3f} at first, {last:.3f} at last")
    return last


def read_all(files, packed):
    """Reads everything once, without training: what the file system can do."""
    started, total = time.monotonic(), 0
    for path in [*files, packed]:
        with open(path, "rb", buffering=0) as file:
            while chunk := file.read(1 << 20):
                total += len(chunk)
    seconds = time.monotonic() - started
    print(f"read throughput: {total / 1e6 / seconds:.0f} MB/s "
          f"({len(files)} small files and one of {os.path.getsize(packed) / 1e6:.0f} MB, one reader)")


def check_checkpoint(model, path, data):
    """Saves, loads into a fresh model, and compares every weight and the loss on one batch."""
    torch.save(model.state_dict(), path + ".new")
    with open(path + ".new", "rb+") as file:
        os.fsync(file.fileno())
    os.rename(path + ".new", path)
    again = ByteModel()
    again.load_state_dict(torch.load(path))
    same = all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), again.state_dict().values()))
    batch = torch.stack([data[i][0] for i in range(BATCH)])
    with torch.no_grad():
        losses = model(batch).item(), again(batch).item()
    if not same or losses[0] != losses[1]:
        sys.exit(f"{path}: the checkpoint read back differs from what was saved")
    print(f"checkpoint: {path}, {os.path.getsize(path) / 1e6:.2f} MB, read back equal (loss {losses[1]:.3f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mount", metavar="MOUNT", help="directory that holds corpus/")
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    torch.manual_seed(7)
    warnings.filterwarnings("ignore", message="This DataLoader will create")  # 4 workers, however few cores
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))  # the loader's workers want cores, too

    files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(args.mount, "corpus"))
                   for name in names)
    packed = os.path.join(args.mount, "corpus.bin")
    pack(files, packed)
    data = Windows(files, packed, args.steps * BATCH)
    model = ByteModel()
    train(model, data, args.steps)
    check_checkpoint(model, os.path.join(args.mount, "checkpoint.pt"), data)
    read_all(files, packed)


if __name__ == "__main__":
    main()
