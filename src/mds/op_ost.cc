// An OST says who and where it is. Its index is its name in every layout, so it belongs to one
// target for good: another uuid is refused. So is an older copy of the target: its last start was
// not the last one here.
#include "mds/keys.h"
#include "mds/op_run.h"
#include "mds/records.h"

namespace trainfs::mds {

Result<Outcome> run(const RegisterOstOp& op, const Command&, Txn& txn) {
  auto bad = [](const std::string& text) { return text.empty() || text.size() > kOstTextBytesMax; };
  if (op.index >= kSingleOstChains - 1 || bad(op.uuid) || bad(op.host)) return Errno(EINVAL);
  if (op.ports.empty() || op.ports.size() > kOstPortsMax) return Errno(EINVAL);
  if (op.start == 0) return Errno(EINVAL);
  OstRecord ost{op.index, op.uuid, op.host, op.ports, /*chainVersion=*/1, op.start};
  if (auto bytes = txn.get(ostKey(op.index))) {
    auto known = decodeOst(*bytes);
    if (known.uuid != op.uuid) return Errno(EEXIST);
    bool newest = known.start == op.acceptedStart || known.start == op.start;
    if (!newest && !op.olderCopy) return Errno(ESTALE);
    ost.chainVersion = known.chainVersion;
  }
  txn.put(ostKey(op.index), encodeOst(ost));
  return Outcome{.value = ost.chainVersion};
}

}  // namespace trainfs::mds
