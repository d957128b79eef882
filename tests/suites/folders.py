"""Another user can't replace what lies in the folders that systoll loads libraries and runs programs from.

The other user makes a folder first, owns one on the way, or may write to one. Only root and systoll's own user can
redirect a path that systoll then uses; if that can't be had, systoll says why.
"""
import os
import stat

from harness import NOBODY, Skip, test, text

FAILED = 125
SHOW = ["sh", "-c", "echo $LD_PRELOAD"]
CURE = ["cure", "sigmask-context", "--", *SHOW]


def me(box):
    return NOBODY if box.user == "nobody" else os.getuid()


def give_away(box, *paths):
    """Gives paths to another user than the box's."""
    if os.getuid() != 0:
        raise Skip("needs root to act as another user")
    for path in paths:
        os.lchown(path, NOBODY - 1, NOBODY - 1)


def folder(box, *names, mode=0o755):
    """Makes a folder of the box's user, and those on the way to it."""
    path = box.dir
    for name in names:
        path = os.path.join(path, name)
        if not os.path.isdir(path):
            os.mkdir(path)
            if box.user == "nobody":
                os.chown(path, NOBODY, NOBODY)
    os.chmod(path, mode)
    return path


def environment(box, **places):
    return {"PATH": box.env["PATH"], "TMPDIR": box.tmp, **places}


def is_safe(box, path):
    """Returns True if no third user can make any part of this path lead elsewhere."""
    at = "/"
    for name in path.strip("/").split("/"):
        at = os.path.join(at, name)
        s = os.lstat(at)
        sticky = stat.S_ISDIR(s.st_mode) and s.st_mode & stat.S_ISVTX
        if s.st_uid not in (0, me(box)) or not stat.S_ISLNK(s.st_mode) and s.st_mode & 0o022 and not sticky:
            return False
        if stat.S_ISLNK(s.st_mode) and not is_safe(box, os.path.realpath(at)):
            return False
    return True


def loads(box, env, avoid=None):
    """Returns the library that a cure makes a program load, which must lie in no folder that others can change."""
    r = box.run([box.systoll, *CURE], env=env)
    path = text(r.stdout).strip()
    assert r.returncode == 0 and path, (r.returncode, text(r.stderr))
    assert is_safe(box, path), f"others can change what is loaded: {path}"
    assert avoid is None or not path.startswith(avoid + "/"), path
    return path


@test()
def a_neighbour_who_makes_the_folder_first_gets_nothing_loaded(box):
    """Without HOME, another user has made /tmp/systoll-UID first: the attack as it was found."""
    os.chmod(box.tmp, 0o1777)
    first = folder(box, "tmp", f"systoll-{me(box)}")
    give_away(box, first)
    loads(box, environment(box), avoid=first)
    # The libraries' folder inside it is the victim's own, but can be renamed.
    folder(box, "tmp", f"systoll-{me(box)}", "shims", mode=0o700)
    loads(box, environment(box), avoid=first)
    os.rename(first, os.path.join(box.dir, "was-first"))
    os.symlink(os.path.join(box.dir, "was-first"), first)
    give_away(box, first)
    loads(box, environment(box), avoid=first)


@test()
def folders_on_the_way_are_looked_at(box):
    """HOME, XDG_CACHE_HOME or TMPDIR leads through a folder that another user owns or may write to."""
    theirs = folder(box, "theirs")
    ours = folder(box, "theirs", "ours", mode=0o700)
    link = os.path.join(box.dir, "link")
    os.symlink(ours, link)
    give_away(box, theirs, link)
    shared = folder(box, "shared", mode=0o775)
    below = folder(box, "shared", "below", mode=0o700)
    for place in (theirs, ours, link, shared, below):
        for env in ({"HOME": place}, {"XDG_CACHE_HOME": place}, {"TMPDIR": place, "HOME": box.dir}):
            loads(box, environment(box, **env), avoid=place)
        assert sorted(os.listdir(place)) == {theirs: ["ours"], shared: ["below"]}.get(place, []), os.listdir(place)


@test()
def links_of_ones_own_are_followed(box):
    """A cache that lies elsewhere, by a link of the user's own, is as good as any."""
    elsewhere = folder(box, "elsewhere", mode=0o700)
    home = folder(box, "home", mode=0o700)
    os.symlink("../elsewhere", os.path.join(home, ".cache"))
    if box.user == "nobody":
        os.lchown(os.path.join(home, ".cache"), NOBODY, NOBODY)
    path = loads(box, environment(box, HOME=home))
    assert path.startswith(home + "/.cache/systoll/shims/") and os.listdir(elsewhere) == ["systoll"], path


@test()
def without_a_safe_folder_it_says_so(box):
    """If nothing can be loaded from a safe place, nothing is run."""
    if os.getuid() != 0:
        raise Skip("needs root to mount a /tmp of its own")
    # The new mount hides systoll, which stands below /tmp; its descriptor still reaches it.
    run = "exec 7<\"$0\"; mount -t tmpfs -o mode=777 tmpfs /tmp; cd /; exec \"$@\""
    become = box.command([])
    command = ["unshare", "--mount", "sh", "-c", run, box.systoll, *become, "/proc/self/fd/7", *CURE]
    saved, box.user = box.user, "root"
    try:
        r = box.run(command, env={"PATH": box.env["PATH"], "TMPDIR": "/tmp"})
    finally:
        box.user = saved
    assert r.returncode == FAILED and r.stdout == b"" and "/tmp" in text(r.stderr), (r.returncode, text(r.stderr))
    assert "others may write" in text(r.stderr), text(r.stderr)


@test(backends=("inproc",))
def facts_about_files_are_kept_in_no_such_folder(box):
    """The counting code and its plans go into programs, so nobody else may have put them there."""
    theirs = folder(box, "theirs")
    cache = folder(box, "theirs", "cache", mode=0o700)
    shared = folder(box, "shared", "cache", mode=0o700)
    os.chmod(os.path.dirname(shared), 0o777)
    give_away(box, theirs)
    for place in (cache, shared):
        r = box.run(box.watch(["/bin/true"], "-q"), env={**box.env, "XDG_CACHE_HOME": place})
        assert r.returncode == 0 and not os.listdir(place), (r.returncode, os.listdir(place), text(r.stderr))
    own = folder(box, "own", mode=0o700)
    r = box.run(box.watch(["/bin/true"], "-q"), env={**box.env, "XDG_CACHE_HOME": own})
    assert r.returncode == 0 and os.listdir(own) == ["systoll"], (r.returncode, text(r.stderr))


@test()
def the_demos_programs_are_built_in_no_such_folder(box):
    where = os.path.join(folder(box, "notes", mode=0o777), "where")
    compiler = box.file("cc", f'#!/bin/sh\npwd > "{where}"\nexit 1\n', 0o755)
    theirs = folder(box, "theirs")
    ours = folder(box, "theirs", "ours", mode=0o700)
    shared = folder(box, "shared", mode=0o777)
    give_away(box, theirs)
    for place in (ours, shared):
        r = box.run([box.systoll, "demo", "getpid"], env={**box.env, "CC": compiler, "TMPDIR": place})
        assert r.returncode == FAILED, (r.returncode, text(r.stderr))
        with open(where) as f:
            built = f.read().strip()
        assert not built.startswith(place) and is_safe(box, os.path.dirname(built)), built
        assert not os.path.exists(built) and not os.listdir(place), built


@test()
def programs_that_others_can_change_are_no_helpers(box):
    """systoll looks for a compiler by its name: one in the current folder, or in a folder that others can write to, is
    not started."""
    ran = os.path.join(folder(box, "notes", mode=0o777), "ran")
    shared = folder(box, "shared", mode=0o777)
    for name in ("cc", "gcc", "clang"):
        for place in (shared, box.dir):
            path = os.path.join(place, name)
            with open(path, "w") as f:
                f.write(f'#!/bin/sh\ntouch "{ran}"\n')
            os.chmod(path, 0o755)
    for path in (f"{shared}:/usr/bin:/bin", ".:/usr/bin:/bin", ":/usr/bin:/bin"):
        r = box.run([box.systoll, "doctor"], env={**box.env, "PATH": path})
        assert not os.path.exists(ran), f"PATH={path} has it started: {text(r.stderr)}"
