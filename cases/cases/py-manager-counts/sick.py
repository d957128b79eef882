import multiprocessing
import random
from collections import Counter


def count(part, lock, counts):
    r = random.Random(part)
    for _ in range(1500):
        word = f"w{int(r.expovariate(0.1))}"
        with lock:
            counts[word] = counts.get(word, 0) + 1


def main():
    with multiprocessing.Manager() as m:
        counts, lock = m.dict(), multiprocessing.Lock()
        ps = [multiprocessing.Process(target=count, args=(p, lock, counts)) for p in range(2)]
        for p in ps:
            p.start()
        for p in ps:
            p.join()
        top = sorted(dict(counts).items(), key=lambda x: (-x[1], x[0]))[:10]
    for word, n in top:
        print(word, n)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    main()
