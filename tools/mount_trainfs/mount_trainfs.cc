// mount.trainfs: what mount(8) runs for `mount -t trainfs` (mount(8), "External helpers").
// Translates its arguments to those of trainfs-client, and becomes it.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "fuse_client/mount_option_help.h"

namespace {

constexpr int kMountUsage = 1, kMountFailure = 32;  // mount(8), "Exit status"

constexpr const char* kHelp =
    "usage: mount.trainfs HOST[:PORT][,HOST...]:/FSNAME[/DIRECTORY] MOUNTPOINT [-fnrsvw] [-o "
    "OPTIONS]\n"
    "Usually run by mount(8): mount -t trainfs HOST:/FSNAME MOUNTPOINT. See mount.trainfs(8).\n";

int usage(const std::string& wrong) {
  std::fprintf(stderr, "mount.trainfs: %s\n%s", wrong.c_str(), kHelp);
  return kMountUsage;
}

// 0, or the status to end with. -f means "fake" here, and "foreground" to the client.
int translate(int argc, char** argv, std::vector<std::string>& forClient) {
  int places = 0;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "-o" || argument == "-t" || argument == "-N") {
      if (i + 1 == argc) return usage(argument + " takes a value");
      std::string value = argv[++i];
      if (argument == "-N") return usage("other mount namespaces (-N) are not supported");
      if (argument == "-o") forClient.insert(forClient.end(), {"-o", value});
    } else if (argument.starts_with('-') &&
               argument.find_first_not_of("fnrsvw", 1) == argument.npos) {
      for (char flag : argument.substr(1)) {
        forClient.push_back(flag == 'f' ? "--check" : std::string("-") + flag);
      }
    } else if (argument.starts_with('-')) {
      return usage("unknown argument '" + argument + "'");
    } else {
      ++places;
      forClient.push_back(argument);
    }
  }
  return places == 2 ? 0 : usage("a source and a mount point are needed");
}

// From where this program was built, beside it, or from where both were installed; else wherever
// PATH has it.
void becomeClient(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  std::string name = "trainfs-client";
  argv.push_back(name.data());
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  char self[4096];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (length > 0) {
    std::string directory(self, static_cast<size_t>(length));
    directory.erase(directory.rfind('/'));
    for (auto place : {"/../src/fuse_client/trainfs-client", "/trainfs-client"})
      execv((directory + place).c_str(), argv.data());
  }
  execv(TRAINFS_CLIENT_INSTALLED, argv.data());
  execvp(name.c_str(), argv.data());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0)) {
    std::printf("%s%s", kHelp, trainfs::client::kMountOptionHelp);
    return 0;
  }
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::puts("mount.trainfs " TRAINFS_VERSION);
    return 0;
  }
  std::vector<std::string> forClient;
  if (int status = translate(argc, argv, forClient); status != 0) return status;
  becomeClient(forClient);
  std::fprintf(stderr, "mount.trainfs: trainfs-client cannot be run: %s\n", std::strerror(errno));
  return kMountFailure;
}
