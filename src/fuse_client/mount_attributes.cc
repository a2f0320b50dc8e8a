#include "fuse_client/mount_attributes.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <vector>

#include "fuse_client/client.h"

namespace trainfs::client {

namespace {

// NAME STATE DETAIL, tab between them; STATE: yes, no, or "-" for what is a figure.
void line(std::string& text, std::string_view name, std::string_view state,
          std::string_view detail) {
  text.append(name).append("\t").append(state).append("\t").append(detail).append("\n");
}

std::string features(Client& client) {
  auto& kernel = client.kernelFeatures();
  std::string text;
  utsname system{};
  uname(&system);
  line(text, "kernel", "-", system.release);
  line(text, "libfuse", "-", fuse_pkgversion());
  if (kernel.libfuseMended)
    line(text, "libfuse_mended", "yes", "no replies are lost over io_uring");
  else
    line(text, "libfuse_mended", "no", "not the one of tools/deps: it loses replies over io_uring");
  line(text, "fuse_protocol", "-",
       std::to_string(kernel.protocolMajor) + "." + std::to_string(kernel.protocolMinor));
  if (kernel.whyNoUring.empty())
    line(text, "io_uring", "yes",
         std::to_string(kernel.uringQueueDepth) + " requests per processor");
  else
    line(text, "io_uring", "no", kernel.whyNoUring);
  line(text, "passthrough", "no", "not in this version");
  if (client.invalidator().hasEpochs())
    line(text, "epochs", "yes", "names are cached until they are recalled");
  else
    line(text, "epochs", "no", "the kernel has none (Linux 6.16): names are looked up each time");
  for (auto& name : kernel.inUse) line(text, name, "yes", "");
  for (auto& name : kernel.missing) line(text, name, "no", "the kernel or libfuse lacks it");
  if (kernel.speaks(7, 38))
    line(text, "parallel_direct_writes", "yes", "");
  else
    line(text, "parallel_direct_writes", "no",
         "the kernel has none (Linux 6.2): writers of one file take turns");
  line(text, "writeback_cache", "no", "the kernel would own the sizes of files");
  constexpr std::string_view kLocking[] = {"cluster-wide", "among the processes of this mount only",
                                           "none (-o noflock)"};
  line(text, "locks", client.locking() == Locking::kNone ? "no" : "yes",
       kLocking[static_cast<int>(client.locking())]);
  line(text, "request_bytes", "-", std::to_string(kernel.maxWriteBytes));
  line(text, "readahead_bytes", "-", std::to_string(kernel.readaheadBytes));
  if (!kernel.whyNoReadahead.empty()) line(text, "readahead", "no", kernel.whyNoReadahead);
  if (client.coherence().mayCache())
    line(text, "caching", "yes", "this is the only client");
  else
    line(text, "caching", "no", "other clients are mounted, or the session is being opened");
  return text;
}

std::optional<std::vector<uint64_t>> hexNumbers(std::string_view text) {
  std::vector<uint64_t> numbers;
  for (const char* at = text.data();;) {
    uint64_t number = 0;
    auto [end, error] = std::from_chars(at, text.data() + text.size(), number, 16);
    if (error != std::errc{}) return std::nullopt;
    numbers.push_back(number);
    if (end == text.data() + text.size()) return numbers;
    if (*end != '.') return std::nullopt;
    at = end + 1;
  }
}

std::string hex(uint64_t number) {
  char digits[16];
  auto [end, error] = std::to_chars(digits, digits + sizeof digits, number, 16);
  return {digits, end};
}

// "end" or the next cursor, then parent, name and path of each, all with a NUL behind.
std::string encode(const NamesPage& page) {
  std::string text = page.end ? "end" : hex(page.next.parent) + "." + hex(page.next.place);
  text.push_back('\0');
  for (auto& name : page.names)
    for (auto& field : {hex(name.parent.value), name.name, name.path})
      text.append(field).push_back('\0');
  return text;
}

// Names lead past the permissions of directories, as in Lustre.
bool mayAskNames(const RequestPtr& request) {
  uint32_t uid = request->identity().uid;
  return uid == 0 || uid == geteuid();
}

void names(const RequestPtr& request, std::string_view which, size_t size) {
  if (!mayAskNames(request)) return request->error(EPERM);
  auto numbers = hexNumbers(which);
  if (!numbers || (numbers->size() != 1 && numbers->size() != 3)) return request->error(EINVAL);
  NameCursor after;
  if (numbers->size() == 3) after = {(*numbers)[1], (*numbers)[2]};
  request->client().mds().names(InodeId{(*numbers)[0]}, request->client().inodes().root(), after,
                                [request, size](Result<NamesPage> page) {
                                  if (!page) return request->error(page.error().code());
                                  request->xattr(encode(*page), size);
                                });
}

}  // namespace

void mountAttribute(const RequestPtr& request, std::string_view name, size_t size) {
  constexpr std::string_view kNames = "names.";
  name.remove_prefix(kMountAttributes.size());
  if (name == "features") return request->xattr(features(request->client()), size);
  if (name == "stats") return request->xattr(request->client().statistics().text(), size);
  if (name.starts_with(kNames)) return names(request, name.substr(kNames.size()), size);
  request->error(ENODATA);
}

}  // namespace trainfs::client
