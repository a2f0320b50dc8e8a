// FUSE handler for ioctl(2): the control of a mount, on its root.
#include <cerrno>
#include <cstring>

#include "fuse_client/client.h"
#include "fuse_client/fuse_ops.h"
#include "fuse_client/fuse_request.h"

namespace trainfs::client {

namespace {

void replyText(fuse_req_t req, const std::string& text) {
  ControlText answer{};
  text.copy(answer.text, sizeof answer.text - 1);
  fuse_reply_ioctl(req, 0, &answer, sizeof answer);
}

void ioctl(fuse_req_t req, fuse_ino_t node, unsigned command, void*, fuse_file_info*, unsigned,
           const void* in, size_t inBytes, size_t outBytes) {
  auto* control = static_cast<Client*>(fuse_req_userdata(req))->control();
  if (node != FUSE_ROOT_ID || control == nullptr || outBytes != sizeof(ControlText)) {
    fuse_reply_err(req, ENOTTY);
  } else if (command == kGetOptions) {
    replyText(req, control->options());
  } else if (command == kChangeOptions && inBytes == sizeof(ControlText)) {
    if (fuse_req_ctx(req)->uid != 0) {
      fuse_reply_err(req, EPERM);
      return;
    }
    auto* text = static_cast<const ControlText*>(in)->text;
    replyText(req, control->change(std::string(text, strnlen(text, sizeof(ControlText)))));
  } else {
    fuse_reply_err(req, ENOTTY);
  }
}

}  // namespace

void addControlOps(fuse_lowlevel_ops& ops) {
  ops.ioctl = ioctl;
}

}  // namespace trainfs::client
