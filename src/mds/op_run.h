// run() of every operation of the state machine, one per file op_*.cc. Each checks everything
// before it changes anything: an error leaves the transaction as it was. What they may depend on is
// the command and the transaction, nothing else. Called by apply() alone.
#pragma once

#include "mds/command.h"
#include "mds/store.h"
#include "trainfs/result.h"

namespace trainfs::mds {

Result<Outcome> run(const CreateOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const LinkOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const UnlinkOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const RmdirOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const RenameOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const SetAttrOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const SetXattrOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const RemoveXattrOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const SetLayoutOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const InstantiateOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const ReportOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const OpenWriteOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const ReleaseOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const OpenSessionOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const EndSessionOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const ReapedOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const RegisterOstOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const RegisterChangelogOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const DeregisterChangelogOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const ClearChangelogOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const TrimChangelogOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const BeginTruncationOp& op, const Command& command, Txn& txn);
Result<Outcome> run(const EndTruncationOp& op, const Command& command, Txn& txn);

}  // namespace trainfs::mds
