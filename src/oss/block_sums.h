// The sums of one object's 64 KiB blocks, as far as they are known, in chunks as they are stored.
// Pure bookkeeping: what each change of the object does to them. Belongs to one data worker.
//
// A block's sum covers the bytes it has, so that of the last block may cover less than 64 KiB. A
// block that was changed in part is unknown until somebody reads it and calls set(). A chunk that
// is neither in memory nor in the index holds blocks of zeros only, so holes cost nothing; unless
// the object's sums are all in doubt (after a crash): then it is unknown as a whole.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "trainfs/types.h"

namespace trainfs::oss {

// So that a full chunk with its head fits into one page of LMDB.
inline constexpr uint64_t kChunkBlocks = 504;

inline uint64_t blocksOf(uint64_t sizeBytes) {
  return sizeBytes / kBlockBytes + (sizeBytes % kBlockBytes != 0);
}
inline uint64_t chunksOf(uint64_t sizeBytes) {
  return (blocksOf(sizeBytes) + kChunkBlocks - 1) / kChunkBlocks;
}
inline uint64_t chunkOfBlock(uint64_t block) {
  return block / kChunkBlocks;
}

// Of 64 KiB of zeros.
uint64_t zeroBlockSum();

class BlockSums {
 public:
  enum class State : uint8_t {
    kStored,  // as the index has it
    kFresh,   // known, but not stored yet
    kUnknown,
  };
  struct Chunk {
    std::vector<uint64_t> sums;  // from the chunk's first block on; the rest are zero blocks
    std::vector<State> states;   // as long as sums
    bool changed = false;        // differs from what the index has
  };

  // Before a function is called that looks at or changes blocks of a chunk, it must be there.
  bool has(uint64_t chunk) const { return chunks_.contains(chunk); }
  void load(uint64_t chunk, std::vector<uint64_t> sums);
  // All blocks up to `sizeBytes` unknown.
  void loadUnknown(uint64_t chunk, uint64_t sizeBytes);

  // Doubt: chunks that are not here are unknown, whatever the index says.
  bool inDoubt() const { return inDoubt_; }
  void doubtAll();
  void trustAll() { inDoubt_ = false; }

  // Nothing: unknown.
  std::optional<uint64_t> get(uint64_t block) const;
  State stateOf(uint64_t block) const;
  void set(uint64_t block, uint64_t sum);

  // [offset, offset+length) was written and `pieceSums` are the sums of its pieces; the object was
  // oldSize bytes long and now is newSize. Chunks needed: of the pieces, of block(oldSize - 1).
  void wrote(FileRange range, const uint64_t* pieceSums, uint64_t oldSizeBytes,
             uint64_t newSizeBytes);
  // Nobody knows what became of the range. Chunks needed: as for wrote.
  void lost(FileRange range, uint64_t oldSizeBytes, uint64_t newSizeBytes);
  // Zeros were put in, within the object's size. Chunks needed: those covered in part; the others
  // are dropped.
  void punched(FileRange range, uint64_t sizeBytes);
  // Chunks needed: of the last block of the smaller and of the new size.
  void resized(uint64_t oldSizeBytes, uint64_t newSizeBytes);

  const std::map<uint64_t, Chunk>& chunks() const { return chunks_; }
  // The next block at or after `block` that is unknown, in a chunk that is here.
  std::optional<uint64_t> nextUnknown(uint64_t block) const;
  size_t changedChunks() const;
  // What a chunk's record holds: its sums without the zero blocks at its end.
  static std::vector<uint64_t> stored(const Chunk& chunk);
  void markStored();
  void clear() { chunks_.clear(); }

 private:
  const Chunk& chunkAt(uint64_t block) const;
  Chunk& chunkAt(uint64_t block);
  void put(uint64_t block, uint64_t sum, State state);
  void grew(uint64_t oldSizeBytes, uint64_t newSizeBytes);

  std::map<uint64_t, Chunk> chunks_;
  bool inDoubt_ = false;
};

}  // namespace trainfs::oss
