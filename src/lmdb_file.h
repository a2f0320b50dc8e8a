// What LMDB takes on trust: that its file is as long as its pages say. It maps the file, so what is
// missing is a SIGBUS at some later moment, in whatever thread. Both functions are for before
// there are threads.
#pragma once

#include <string>

struct MDB_env;

namespace trainfs {

// What is wrong with DIRECTORY/data.mdb, in words that name it; empty: nothing, or there is no such
// file, or mdb_env_open() will say it.
std::string checkLmdbFile(const std::string& directory);

// LMDB's own assertions, before they end the process, say which environment is damaged.
void nameAssertions(MDB_env* environment);

// From now on a page of a mapped file that cannot be read (the file was cut off, or the disk
// failed) ends the process with a line on stderr that names the file. So does a bad address, to
// which LMDB follows damaged pages, and abort(3), because it may have written over memory for them:
// then all files are named that it may have been.
void nameLostPages();

}  // namespace trainfs
