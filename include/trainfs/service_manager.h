// What a daemon tells the service manager that started it: the protocol of sd_notify(3), a datagram
// to the socket that $NOTIFY_SOCKET names. Without one nothing happens. Any thread.
#pragma once

#include <string>

namespace trainfs::service_manager {

// It serves; `status` is a line for `systemctl status`.
void ready(const std::string& status);
void status(const std::string& status);
// It reads its configuration again; ready() ends that.
void reloading();
void stopping();

}  // namespace trainfs::service_manager
