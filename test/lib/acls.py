# ACLs and modes by several users: the same random calls on two trees, and what came of them compared.
# acls.py SEED STEPS TREE TREE: each TREE is an empty directory; as root.
import os, random, stat, struct, sys

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER, NOBODY = 1, 2, 4, 8, 16, 32, 0xFFFFFFFF
# uid: (gid, supplementary groups)
USERS = {0: (0, []), 3001: (4001, [4002]), 3002: (4002, []), 3003: (4003, [4001, 4003]), 3004: (4004, [])}
GROUPS = (4001, 4002, 4003, 4004)


def value(entries, version=2):
    return struct.pack("<I", version) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def random_acl(random):
    bits = lambda: random.choice((7, 6, 5, 4, 0, random.randrange(8)))
    users = sorted(random.sample(sorted(USERS)[1:], random.choice((0, 0, 1, 2))))
    groups = sorted(random.sample(GROUPS, random.choice((0, 0, 1, 2))))
    mask = [(MASK, bits(), NOBODY)] if users or groups or random.random() < 0.1 else []
    entries = [(USER_OBJ, bits(), NOBODY), *((USER, bits(), user) for user in users), (GROUP_OBJ, bits(), NOBODY),
               *((GROUP, bits(), group) for group in groups), *mask, (OTHER, bits(), NOBODY)]
    if random.random() < 0.05:
        entries.pop(random.randrange(len(entries)))  # some are not valid then
    return value(entries, 2 if random.random() < 0.98 else 1)


def become(user):
    os.seteuid(0)
    gid, groups = USERS[user]
    os.setgroups(groups)
    os.setegid(gid)
    os.seteuid(user)


def answer(call, *args, **named):
    try:
        return call(*args, **named)
    except OSError as error:
        return f"errno {error.errno}"


def used(path, flags):
    os.close(os.open(path, flags | os.O_NONBLOCK))


def xattr(path, name):
    return answer(os.getxattr, path, name, follow_symlinks=False)


def seen(path):  # by root
    status = answer(os.lstat, path)
    if isinstance(status, str):
        return status
    return oct(status.st_mode), status.st_uid, status.st_gid, xattr(path, ACCESS), xattr(path, DEFAULT)


class Step:
    """One call of one user: chosen once, run in each tree."""

    def __init__(self, random, paths, number):
        self.user = random.choice(sorted(USERS))
        self.path = random.choice(paths)
        self.umask = random.choice((0, 0o22, 0o27, 0o77))
        self.mode = random.choice((0o666, 0o777, 0o640, 0o2775, 0o1777, random.randrange(0o10000)))
        self.flags = random.choice((os.O_RDONLY, os.O_WRONLY, os.O_RDWR))
        self.new = f"{random.choice(paths)}/{number}"
        self.owner, self.group = random.choice(sorted(USERS)), random.choice(GROUPS)
        self.acl = random_acl(random)
        self.xattr = random.choice((ACCESS, DEFAULT))
        kinds = {"create": 5, "mkdir": 4, "mknod": 1, "symlink": 1, "link": 3, "rename": 2, "chmod": 3, "chown": 1,
                 "set_acl": 6, "remove_acl": 2, "open": 6, "list": 2, "access": 3, "unlink": 1}
        self.kind = random.choices(list(kinds), list(kinds.values()))[0]
        # The top stays open to everybody, or soon nobody but root could do anything.
        if self.path == "" and (self.kind in ("chmod", "chown") or self.xattr == ACCESS):
            self.kind = "list"

    def run(self, tree):
        path, new = tree + self.path, tree + self.new
        if self.kind == "remove_acl" and answer(os.lstat, path).st_mode & stat.S_ISGID:
            return "not tried"  # local file systems differ in whether that takes the bit
        if self.kind == "chown":
            return answer(os.chown, path, self.owner, self.group, follow_symlinks=False)
        become(self.user)
        os.umask(self.umask)
        try:
            return getattr(self, self.kind)(path, new)
        finally:
            become(0)
            os.umask(0)

    def create(self, path, new):
        return answer(lambda: os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, self.mode)))

    def mkdir(self, path, new):
        return answer(os.mkdir, new, self.mode)

    def mknod(self, path, new):
        return answer(os.mknod, new, stat.S_IFIFO | self.mode & 0o777)

    def symlink(self, path, new):
        return answer(os.symlink, "target", new)

    def link(self, path, new):
        return answer(os.link, path, new, follow_symlinks=False)

    def rename(self, path, new):
        return "not tried" if self.path == "" else answer(os.rename, path, new)

    def chmod(self, path, new):
        return answer(os.chmod, path, self.mode)

    def set_acl(self, path, new):
        return answer(os.setxattr, path, self.xattr, self.acl, follow_symlinks=False)

    def remove_acl(self, path, new):
        return answer(os.removexattr, path, self.xattr, follow_symlinks=False)

    def open(self, path, new):
        return answer(used, path, self.flags)

    def list(self, path, new):
        return answer(lambda: sorted(os.listdir(path)))

    def access(self, path, new):
        return [os.access(path, how, effective_ids=True) for how in (os.R_OK, os.W_OK, os.X_OK)]

    def unlink(self, path, new):
        return "not tried" if self.path == "" else answer(os.unlink, path)

    def __str__(self):
        return str(self.__dict__)


def walk(tree):
    """Names below the tree, "" for itself; root may look everywhere."""
    found = [""]
    for directory, directories, files in os.walk(tree):
        found += [os.path.join(directory, name)[len(tree):] for name in directories + files]
    return sorted(found)


def main():
    seed, steps, *trees = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
    choose = random.Random(seed)
    os.umask(0)
    for tree in trees:
        os.chmod(tree, 0o777)
    outcomes = {}
    for number in range(steps):
        paths = walk(trees[0])
        if len(paths) > 60:  # begin anew, so that much of what is met is new
            for name in sorted(paths, reverse=True)[:-1]:
                for tree in trees:
                    (os.rmdir if stat.S_ISDIR(os.lstat(tree + name).st_mode) else os.unlink)(tree + name)
            paths = [""]
        step = Step(choose, paths, number)
        answers = [step.run(tree) for tree in trees]
        assert answers[0] == answers[1], (number, answers, str(step))
        outcomes[step.kind] = outcomes.get(step.kind, 0) + (not str(answers[0]).startswith(("errno", "not")))
        for path in {step.path, step.new, os.path.dirname(step.new)}:
            states = [seen(tree + path) for tree in trees]
            assert states[0] == states[1], (number, path, states, answers, str(step))
        if number % 100 == 0:
            left, right = (walk(tree) for tree in trees)
            assert left == right, (number, left, right)
            for path in left:
                states = [seen(tree + path) for tree in trees]
                assert states[0] == states[1], (number, path, states)
    assert all(outcomes.values()), outcomes
    print("went through:", outcomes)


if __name__ == "__main__":
    main()
