"""Prices the rows of an order book with two worker processes."""
import multiprocessing
import zlib


def price(row):
    number, sku, amount = row
    base = zlib.crc32(sku.encode()) % 900 + 100
    discount = 10 if amount > 5 else 0
    return number, base * amount * (100 - discount) // 100


class Book:
    def __init__(self, n):
        self.n = n

    def rows(self):
        for i in range(self.n):
            yield i, "sku-%d" % (i * 31 % 499), 1 + i % 9


class Totals:
    def __init__(self):
        self.rows = self.sum = self.check = 0

    def add(self, number, net):
        self.rows += 1
        self.sum += net
        self.check = (self.check * 31 + number * net) & 0xFFFFFFFF


def main():
    rows = Book(6000).rows()
    totals = Totals()
    with multiprocessing.Pool(2) as pool:
        for number, net in pool.imap(price, rows):
            totals.add(number, net)
        pool.close()
        pool.join()
    print("rows %d, sum %d, check %08x" % (totals.rows, totals.sum, totals.check))


if __name__ == "__main__":
    main()
