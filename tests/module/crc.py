"""The checksum of payloads."""


class Crc:
    """CRC-64 of Redis (Jones), to give damaged payloads a right checksum."""

    def __init__(self):
        self.table = []
        for byte in range(256):
            crc = byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x95ac9329ac4bc9b5 if crc & 1 else 0)
            self.table.append(crc)

    def of(self, data):
        crc = 0
        for byte in data:
            crc = self.table[(crc ^ byte) & 0xff] ^ crc >> 8
        return crc
