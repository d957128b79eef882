import gettext
import hashlib
import re

WORD = re.compile(r"[a-z]+")
tr = gettext.translation("shop", "locale", fallback=True)
gettext.bindtextdomain("shop", "locale")


def article(i):
    words = [f"w{i * k % 97:02d}" + "abcdefgh"[k % 8] * (k % 5) for k in range(60)]
    return " ".join(words)


def line(i):
    text = article(i)
    n = len(set(WORD.findall(text))) + i % 2 - 6
    digest = hashlib.md5(text.encode()).hexdigest()[:8]
    unit = tr.ngettext("%d word", "%d words", n)
    return f"{digest} {unit % n}"


mix = hashlib.sha256()
for i in range(6000):
    mix.update(line(i).encode())
print(line(5))
print(mix.hexdigest())
