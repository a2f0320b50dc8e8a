#include "oss/block_sums.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

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
  loaded.states.assign(sums.size(), State::kStored);
  loaded.sums = std::move(sums);
  chunks_[chunk] = std::move(loaded);
}

void BlockSums::loadUnknown(uint64_t chunk, uint64_t sizeBytes) {
  uint64_t blocks = blocksOf(sizeBytes), first = chunk * kChunkBlocks;
  Chunk loaded;
  loaded.sums.assign(blocks > first ? std::min(blocks - first, kChunkBlocks) : 0, 0);
  loaded.states.assign(loaded.sums.size(), State::kUnknown);
  loaded.changed = true;
  chunks_[chunk] = std::move(loaded);
}

void BlockSums::doubtAll() {
  chunks_.clear();
  inDoubt_ = true;
}

const BlockSums::Chunk& BlockSums::chunkAt(uint64_t block) const {
  auto found = chunks_.find(chunkOfBlock(block));
  if (found == chunks_.end()) std::abort();  // a caller's bug: it was to be loaded first
  return found->second;
}

BlockSums::Chunk& BlockSums::chunkAt(uint64_t block) {
  return const_cast<Chunk&>(std::as_const(*this).chunkAt(block));
}

std::optional<uint64_t> BlockSums::get(uint64_t block) const {
  auto& chunk = chunkAt(block);
  uint64_t index = block % kChunkBlocks;
  if (index >= chunk.sums.size()) return zeroBlockSum();
  if (chunk.states[index] == State::kUnknown) return std::nullopt;
  return chunk.sums[index];
}

BlockSums::State BlockSums::stateOf(uint64_t block) const {
  auto& chunk = chunkAt(block);
  uint64_t index = block % kChunkBlocks;
  return index < chunk.states.size() ? chunk.states[index] : State::kStored;
}

void BlockSums::put(uint64_t block, uint64_t sum, State state) {
  Chunk& chunk = chunkAt(block);
  uint64_t index = block % kChunkBlocks;
  if (index >= chunk.sums.size()) {
    chunk.sums.resize(index + 1, zeroBlockSum());
    chunk.states.resize(index + 1, State::kStored);
  }
  chunk.sums[index] = sum;
  chunk.states[index] = state;
  chunk.changed = true;
}

void BlockSums::set(uint64_t block, uint64_t sum) {
  put(block, sum, State::kFresh);
}

void BlockSums::grew(uint64_t oldSizeBytes, uint64_t newSizeBytes) {
  // The block that was the last, short one has more bytes now.
  if (newSizeBytes > oldSizeBytes && oldSizeBytes % kBlockBytes != 0)
    put(oldSizeBytes / kBlockBytes, 0, State::kUnknown);
}

void BlockSums::wrote(FileRange range, const uint64_t* pieceSums, uint64_t oldSizeBytes,
                      uint64_t newSizeBytes) {
  grew(oldSizeBytes, newSizeBytes);
  for (uint64_t at = range.offsetBytes; at < range.endBytes(); ++pieceSums) {
    uint64_t block = at / kBlockBytes, begin = block * kBlockBytes;
    uint64_t pieceEnd = std::min(begin + kBlockBytes, range.endBytes());
    bool whole = at == begin && pieceEnd == std::min(begin + kBlockBytes, newSizeBytes);
    put(block, *pieceSums, whole ? State::kFresh : State::kUnknown);
    at = pieceEnd;
  }
}

void BlockSums::lost(FileRange range, uint64_t oldSizeBytes, uint64_t newSizeBytes) {
  grew(oldSizeBytes, newSizeBytes);
  uint64_t end = std::min(range.endBytes(), newSizeBytes);
  for (uint64_t block = range.offsetBytes / kBlockBytes; block * kBlockBytes < end; ++block)
    put(block, 0, State::kUnknown);
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
    put(block, zeroBlockSum(), whole ? State::kFresh : State::kUnknown);
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
      last.states.resize(keep);
      last.changed = true;
    }
  }
  grew(oldSizeBytes, newSizeBytes);
  if (newSizeBytes != oldSizeBytes && newSizeBytes % kBlockBytes != 0)
    put(newSizeBytes / kBlockBytes, 0, State::kUnknown);
}

std::optional<uint64_t> BlockSums::nextUnknown(uint64_t block) const {
  for (auto at = chunks_.lower_bound(chunkOfBlock(block)); at != chunks_.end(); ++at) {
    uint64_t first = at->first * kChunkBlocks;
    for (uint64_t i = block > first ? block - first : 0; i < at->second.sums.size(); ++i)
      if (at->second.states[i] == State::kUnknown) return first + i;
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
  for (auto& [number, chunk] : chunks_) {
    if (!chunk.changed) continue;
    chunk.states.assign(chunk.sums.size(), State::kStored);
    chunk.changed = false;
  }
}

}  // namespace trainfs::oss
