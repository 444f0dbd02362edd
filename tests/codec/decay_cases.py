#!/usr/bin/env python3
"""Writes the numbers of codec/decay.c and those that its test compares with, from decimals of 200 digits.

    python3 tests/codec/decay_cases.py constants     the table in codec/decay.c
    python3 tests/codec/decay_cases.py cases         build/tests/codec/decay_cases.h
"""

import random
import sys
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, getcontext

getcontext().prec = 200
POINT = 62
STEPS = 31
LN2 = Decimal(2).ln()
YEAR_US = 365 * 86400 * 10**6
EPOCH_US = 1577836800 * 10**6


def log2(number):
    return number.ln() / LN2


def exp2(number):
    return (number * LN2).exp()


def floor(number):
    return int(number.to_integral_value(rounding=ROUND_FLOOR))


def nearest(number):
    return int(number.to_integral_value(rounding=ROUND_HALF_EVEN))


def fixed(number):
    return floor(number * 2**POINT)


def constants():
    print("/* 2^62 * log2(1 + 2^-k), rounded down, k = 1 .. 31. */")
    for k in range(1, STEPS + 1):
        print(f"    UINT64_C({fixed(log2(1 + Decimal(2) ** -k))}),")
    print(f"2^62 * ln(2): UINT64_C({fixed(LN2)})")
    print(f"2^62 / ln(2): UINT64_C({fixed(1 / LN2)})")


def print_function(name, of, numbers):
    """Pairs of an argument and the nearest value."""
    print(f"static const struct {{\n    uint64_t number, value;\n}} {name}[] = {{")
    for number in numbers:
        value = nearest(of(number) * 2**POINT)
        print(f"    {{UINT64_C({number}), UINT64_C({value})}},")
    print("};\n")


def random_numbers(random_source):
    """Fractions of POINT bits: ends, single bits, runs of ones, and any."""
    one = 2**POINT
    numbers = {0, 1, one - 1, one // 2, one // 3}
    numbers |= {2**k for k in range(0, POINT, 5)} | {one - 2**k for k in range(0, POINT, 5)}
    while len(numbers) < 120:
        numbers.add(random_source.randrange(one))
    return sorted(numbers)


def history(random_source, half_life_us, count):
    """Results as (units, time): some together, some half-lives apart."""
    time_us = EPOCH_US + random_source.randrange(20 * YEAR_US)
    results = []
    for _ in range(count):
        units = random_source.choice([1, 3, 10, random_source.randrange(1, 10**6)])
        results.append((units, time_us))
        pause = random_source.choice([0, 1, 1000, half_life_us // 7, half_life_us, 5 * half_life_us])
        time_us += random_source.randrange(pause + 1)
    read_us = time_us + random_source.randrange(3 * half_life_us)
    return results, read_us


def print_histories(random_source):
    print("struct history_result {\n    uint64_t units;\n    int64_t time_us;\n};")
    print("/* score: 2^20 times the score at read_us. */")
    print("struct history {\n    int64_t half_life_us, read_us;\n    uint64_t score;\n"
          "    unsigned count;\n    struct history_result results[HISTORY_MAX];\n};")
    print("static const struct history histories[] = {")
    for half_life_us in [3600 * 10**6, 6 * 3600 * 10**6, 86400 * 10**6, 7 * 86400 * 10**6,
                         1000003 * 10**6]:
        for count in [1, 2, 5, 12]:
            results, read_us = history(random_source, half_life_us, count)
            score = sum(units * exp2(Decimal(time_us - read_us) / half_life_us)
                        for units, time_us in results)
            print(f"    {{.half_life_us = INT64_C({half_life_us}), .read_us = INT64_C({read_us}),\n"
                  f"     .score = UINT64_C({nearest(score * 2**20)}), .count = {count},\n"
                  "     .results = {")
            for units, time_us in results:
                print(f"         {{UINT64_C({units}), INT64_C({time_us})}},")
            print("     }},")
    print("};\n")


def cases():
    random_source = random.Random(25)
    numbers = random_numbers(random_source)
    one = 2**POINT
    print("/* Written by tests/codec/decay_cases.py, which calculates with 200 digits. */")
    print("#ifndef TESTS_CODEC_DECAY_CASES_H\n#define TESTS_CODEC_DECAY_CASES_H\n")
    print("#include <stdint.h>\n")
    print("enum { HISTORY_MAX = 12 };\n")
    print_function("log2_cases", lambda number: log2(Decimal(number) / one),
                   [one + number for number in numbers] + [2 * one])
    print_function("exp2_cases", lambda number: exp2(Decimal(number) / one), numbers)
    print_histories(random_source)
    print("#endif")


if __name__ == "__main__":
    {"constants": constants, "cases": cases}[sys.argv[1]]()
