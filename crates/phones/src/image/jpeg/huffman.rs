//! The bit stream: frequencies in codes of the standard's tables.

use std::sync::LazyLock;

use super::dct::Frequencies;

/// How many codes there are of each length from 1 to 16, and what they stand for, as a file tells it.
type CodeTable = (&'static [u8; 16], &'static [u8]);

/// The codes of one kind of block.
pub(super) struct Tables {
    /// Of a mean's difference from the one before.
    pub differences: CodeTable,
    /// Of a run of zeros and the value after it.
    pub details: CodeTable,
    difference_codes: [Code; 256],
    detail_codes: [Code; 256],
}

#[derive(Clone, Copy, Default)]
struct Code {
    bits: u16,
    length: u8,
}

static LIGHT: LazyLock<Tables> = LazyLock::new(|| {
    Tables::new(
        (&[0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0], &MEANS),
        (&[0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125], &LIGHT_DETAILS),
    )
});

static COLOR: LazyLock<Tables> = LazyLock::new(|| {
    Tables::new(
        (&[0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0], &MEANS),
        (&[0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119], &COLOR_DETAILS),
    )
});

/// Sizes of differences, from the shortest code to the longest.
const MEANS: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

/// The run in the high half, the value's size in the low one.
const LIGHT_DETAILS: [u8; 162] = [
    0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71, 0x14,
    0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09,
    0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a,
    0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65,
    0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88,
    0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9,
    0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca,
    0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea,
    0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
];
const COLOR_DETAILS: [u8; 162] = [
    0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71, 0x13, 0x22, 0x32,
    0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33, 0x52, 0xf0, 0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16,
    0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17, 0x18, 0x19, 0x1a, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37, 0x38, 0x39,
    0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64,
    0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x82, 0x83, 0x84, 0x85, 0x86,
    0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
    0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8,
    0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9,
    0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
];

/// Sixteen zeros, and no more but zeros.
const LONG_RUN: usize = 0xf0;
const END: usize = 0x00;

impl Tables {
    pub(super) fn light() -> &'static Tables {
        &LIGHT
    }

    pub(super) fn color() -> &'static Tables {
        &COLOR
    }

    fn new(differences: CodeTable, details: CodeTable) -> Tables {
        Tables { differences, details, difference_codes: codes(differences), detail_codes: codes(details) }
    }
}

/// Codes of a length are numbers in a row, and each longer length goes on where the last ended.
fn codes((counts, symbols): CodeTable) -> [Code; 256] {
    let mut codes = [Code::default(); 256];
    let mut symbols = symbols.iter();
    let mut bits = 0;
    for (length, count) in (1..).zip(counts) {
        for symbol in symbols.by_ref().take(usize::from(*count)) {
            codes[usize::from(*symbol)] = Code { bits, length };
            bits += 1;
        }
        bits <<= 1;
    }
    codes
}

/// One band's bit stream while it is written.
pub(super) struct BitStream {
    bytes: Vec<u8>,
    /// The last bits, in the low end.
    waiting: u64,
    count: u32,
    /// The last mean of each component.
    means: [i16; 3],
}

impl BitStream {
    pub(super) fn new(room: usize) -> BitStream {
        BitStream { bytes: Vec::with_capacity(room), waiting: 0, count: 0, means: [0; 3] }
    }

    /// A block of one component.
    pub(super) fn light(&mut self, component: usize, tables: &Tables, found: Frequencies) {
        if found.is_flat {
            return self.flat(component, tables, found.mean());
        }
        self.mean(component, tables, found.mean());
        let mut run = 0;
        for value in found.details() {
            if value == 0 {
                run += 1;
                continue;
            }
            while run > 15 {
                self.put(tables.detail_codes[LONG_RUN]);
                run -= 16;
            }
            let size = size(value);
            self.put(tables.detail_codes[run << 4 | size as usize]);
            self.put_value(value, size);
            run = 0;
        }
        if run > 0 {
            self.put(tables.detail_codes[END]);
        }
    }

    /// A block that is nothing but its mean.
    pub(super) fn flat(&mut self, component: usize, tables: &Tables, mean: i16) {
        self.mean(component, tables, mean);
        self.put(tables.detail_codes[END]);
    }

    fn mean(&mut self, component: usize, tables: &Tables, mean: i16) {
        let difference = mean - std::mem::replace(&mut self.means[component], mean);
        let size = size(difference);
        self.put(tables.difference_codes[size as usize]);
        self.put_value(difference, size);
    }

    fn put(&mut self, code: Code) {
        self.put_bits(u64::from(code.bits), u32::from(code.length));
    }

    /// A negative value is told by the bits of the one below it.
    fn put_value(&mut self, value: i16, size: u32) {
        let bits = (value - i16::from(value < 0)) as u64;
        self.put_bits(bits & ((1 << size) - 1), size);
    }

    fn put_bits(&mut self, bits: u64, length: u32) {
        self.waiting = self.waiting << length | bits;
        self.count += length;
        if self.count >= 32 {
            self.count -= 32;
            let word = (self.waiting >> self.count) as u32;
            // A byte of ones would be taken for a marker, so a zero follows it.
            if word & 0x8080_8080 & word.wrapping_add(0x0101_0101) == word & 0x8080_8080 {
                self.bytes.extend_from_slice(&word.to_be_bytes());
            } else {
                word.to_be_bytes().into_iter().for_each(|byte| self.put_byte(byte));
            }
        }
    }

    fn put_byte(&mut self, byte: u8) {
        self.bytes.push(byte);
        if byte == 0xff {
            self.bytes.push(0);
        }
    }

    /// The last byte is filled with ones.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let fill = (8 - self.count % 8) % 8;
        self.waiting = self.waiting << fill | ((1 << fill) - 1);
        self.count += fill;
        while self.count > 0 {
            self.count -= 8;
            self.put_byte((self.waiting >> self.count) as u8);
        }
        self.bytes
    }
}

/// How many bits a value takes.
fn size(value: i16) -> u32 {
    u16::BITS - value.unsigned_abs().leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_of_the_standard() {
        let code = |code: Code| format!("{:0width$b}", code.bits, width = usize::from(code.length));
        assert_eq!(code(Tables::light().difference_codes[0]), "00");
        assert_eq!(code(Tables::light().difference_codes[11]), "111111110");
        assert_eq!(code(Tables::light().detail_codes[END]), "1010");
        assert_eq!(code(Tables::light().detail_codes[LONG_RUN]), "11111111001");
        assert_eq!(code(Tables::color().detail_codes[END]), "00");
        assert_eq!(code(Tables::color().detail_codes[0xfa]), "1111111111111110");
    }

    #[test]
    fn bytes_of_ones_are_followed_by_a_zero_wherever_they_stand() {
        for at in 0..4 {
            let mut scan = BitStream::new(0);
            let word = 0x8112_7f80_u32 & !(0xff << (8 * at)) | 0xff << (8 * at);
            scan.put_bits(u64::from(word >> 16), 16);
            scan.put_bits(u64::from(word & 0xffff), 16);
            let expected: Vec<u8> = word
                .to_be_bytes()
                .into_iter()
                .flat_map(|byte| [byte, 0].into_iter().take(1 + usize::from(byte == 0xff)))
                .collect();
            assert_eq!(scan.finish(), expected);
        }
    }

    #[test]
    fn the_last_byte_is_filled_with_ones() {
        let mut scan = BitStream::new(0);
        scan.put_bits(0b010, 3);
        assert_eq!(scan.finish(), [0b0101_1111]);
        assert!(BitStream::new(0).finish().is_empty());
    }
}
