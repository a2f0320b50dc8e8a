#include "oss/block_sums.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "trainfs/bulk.h"

namespace trainfs::oss {

uint64_t zeroBlockSum() {
  static const uint64_t sum = [] {
    static const std::array<std::byte, kBlockBytes> zeros{};
    return blockSum(zeros.data(), zeros.size());
  }();
  return sum;
}

void BlockSums::load(uint64_t chunk, std::vector<uint64_t> sums) {
  Chunk loaded;
  loaded.unknown.assign(sums.size(), false);
  loaded.sums = std::move(sums);
  chunks_[chunk] = std::move(loaded);
}

void BlockSums::loadUnknown(uint64_t chunk, uint64_t sizeBytes) {
  uint64_t blocks = blocksOf(sizeBytes), first = chunk * kChunkBlocks;
  Chunk loaded;
  loaded.sums.assign(blocks > first ? std::min(blocks - first, kChunkBlocks) : 0, 0);
  loaded.unknown.assign(loaded.sums.size(), true);
  loaded.changed = true;
  chunks_[chunk] = std::move(loaded);
}

void BlockSums::doubtAll() {
  chunks_.clear();
  inDoubt_ = true;
}

BlockSums::Chunk& BlockSums::chunkAt(uint64_t block) {
  auto found = chunks_.find(chunkOfBlock(block));
  if (found == chunks_.end()) std::abort();  // a caller's bug: it was to be loaded first
  return found->second;
}

std::optional<uint64_t> BlockSums::get(uint64_t block) const {
  auto& chunk = const_cast<BlockSums*>(this)->chunkAt(block);
  uint64_t index = block % kChunkBlocks;
  if (index >= chunk.sums.size()) return zeroBlockSum();
  if (chunk.unknown[index]) return std::nullopt;
  return chunk.sums[index];
}

void BlockSums::put(uint64_t block, uint64_t sum, bool unknown) {
  Chunk& chunk = chunkAt(block);
  uint64_t index = block % kChunkBlocks;
  if (index >= chunk.sums.size()) {
    chunk.sums.resize(index + 1, zeroBlockSum());
    chunk.unknown.resize(index + 1, false);
  }
  chunk.sums[index] = sum;
  chunk.unknown[index] = unknown;
  chunk.changed = true;
}

void BlockSums::set(uint64_t block, uint64_t sum) {
  put(block, sum, false);
}

void BlockSums::grew(uint64_t oldSizeBytes, uint64_t newSizeBytes) {
  // The block that was the last, short one has more bytes now.
  if (newSizeBytes > oldSizeBytes && oldSizeBytes % kBlockBytes != 0)
    put(oldSizeBytes / kBlockBytes, 0, true);
}

void BlockSums::wrote(FileRange range, const uint64_t* pieceSums, uint64_t oldSizeBytes,
                      uint64_t newSizeBytes) {
  grew(oldSizeBytes, newSizeBytes);
  for (uint64_t at = range.offsetBytes; at < range.endBytes(); ++pieceSums) {
    uint64_t block = at / kBlockBytes, begin = block * kBlockBytes;
    uint64_t pieceEnd = std::min(begin + kBlockBytes, range.endBytes());
    bool whole = at == begin && pieceEnd == std::min(begin + kBlockBytes, newSizeBytes);
    put(block, *pieceSums, !whole);
    at = pieceEnd;
  }
}

void BlockSums::lost(FileRange range, uint64_t oldSizeBytes, uint64_t newSizeBytes) {
  grew(oldSizeBytes, newSizeBytes);
  uint64_t end = std::min(range.endBytes(), newSizeBytes);
  for (uint64_t block = range.offsetBytes / kBlockBytes; block * kBlockBytes < end; ++block)
    put(block, 0, true);
}

void BlockSums::punched(FileRange range, uint64_t sizeBytes) {
  uint64_t end = std::min(range.endBytes(), sizeBytes);
  uint64_t block = range.offsetBytes / kBlockBytes;
  while (block * kBlockBytes < end) {
    uint64_t begin = block * kBlockBytes;
    uint64_t chunkEnd = (chunkOfBlock(block) + 1) * kChunkBlocks * kBlockBytes;
    if (block % kChunkBlocks == 0 && range.offsetBytes <= begin && chunkEnd <= end) {
      chunks_.erase(chunkOfBlock(block));
      block += kChunkBlocks;
      continue;
    }
    bool whole = range.offsetBytes <= begin && begin + kBlockBytes <= end;
    put(block, whole ? zeroBlockSum() : 0, !whole);
    ++block;
  }
}

void BlockSums::resized(uint64_t oldSizeBytes, uint64_t newSizeBytes) {
  if (newSizeBytes < oldSizeBytes) {
    chunks_.erase(chunks_.lower_bound(chunksOf(newSizeBytes)), chunks_.end());
    uint64_t blocks = blocksOf(newSizeBytes);
    if (blocks % kChunkBlocks != 0) {
      Chunk& last = chunkAt(blocks - 1);
      size_t keep = std::min<size_t>(blocks % kChunkBlocks, last.sums.size());
      last.sums.resize(keep);
      last.unknown.resize(keep);
      last.changed = true;
    }
  }
  grew(oldSizeBytes, newSizeBytes);
  if (newSizeBytes != oldSizeBytes && newSizeBytes % kBlockBytes != 0)
    put(newSizeBytes / kBlockBytes, 0, true);
}

std::optional<uint64_t> BlockSums::nextUnknown(uint64_t block) const {
  for (auto at = chunks_.lower_bound(chunkOfBlock(block)); at != chunks_.end(); ++at) {
    uint64_t first = at->first * kChunkBlocks;
    for (uint64_t i = block > first ? block - first : 0; i < at->second.sums.size(); ++i)
      if (at->second.unknown[i]) return first + i;
  }
  return std::nullopt;
}

size_t BlockSums::changedChunks() const {
  size_t count = 0;
  for (auto& [number, chunk] : chunks_) count += chunk.changed;
  return count;
}

std::vector<uint64_t> BlockSums::stored(const Chunk& chunk) {
  auto sums = chunk.sums;
  while (!sums.empty() && sums.back() == zeroBlockSum()) sums.pop_back();
  return sums;
}

void BlockSums::markStored() {
  for (auto& [number, chunk] : chunks_) chunk.changed = false;
}

}  // namespace trainfs::oss
