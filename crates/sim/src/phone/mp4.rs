//! MP4 files of JPEG pictures: the smallest that players open.

use std::time::Duration;

/// A video that is being made. All pictures have the size of the first.
pub(super) struct Mp4 {
    pictures: Vec<u8>,
    sizes: Vec<u32>,
    size: (u32, u32),
    pause: u32,
}

impl Mp4 {
    /// With this long between two pictures.
    pub(super) fn new(pause: Duration) -> Mp4 {
        Mp4 { pictures: Vec::new(), sizes: Vec::new(), size: (0, 0), pause: pause.as_millis() as u32 }
    }

    pub(super) fn push(&mut self, jpeg: &[u8], size: (u32, u32)) {
        if self.sizes.is_empty() {
            self.size = size;
        }
        self.pictures.extend(jpeg);
        self.sizes.push(jpeg.len() as u32);
    }

    /// The file: what it is, the pictures, and the table that says where each is.
    pub(super) fn finish(self) -> Vec<u8> {
        let kind = atom(b"ftyp", &[b"isom".as_slice(), &0x200u32.to_be_bytes(), b"isommp41"].concat());
        let first = kind.len() as u32 + 8;
        let movie = self.movie(first);
        [kind, atom(b"mdat", &self.pictures), movie].concat()
    }

    fn movie(&self, first: u32) -> Vec<u8> {
        let length = self.pause * self.sizes.len() as u32;
        let header =
            atom(b"mvhd", &words(&[0, 0, 0, 1000, length, 0x10000, 0x0100_0000, 0, 0], &MATRIX, &[0; 6], &[2]));
        let track = atom(b"trak", &[self.track_header(length), atom(b"mdia", &self.media(first, length))].concat());
        atom(b"moov", &[header, track].concat())
    }

    fn track_header(&self, length: u32) -> Vec<u8> {
        let (width, height) = self.size;
        // 3: enabled and in the movie. Sizes are fixed-point.
        atom(b"tkhd", &words(&[3, 0, 0, 1, 0, length, 0, 0, 0, 0], &MATRIX, &[width << 16, height << 16], &[]))
    }

    fn media(&self, first: u32, length: u32) -> Vec<u8> {
        let header = atom(b"mdhd", &words(&[0, 0, 0, 1000, length, 0x55c4_0000], &[], &[], &[]));
        let handler = atom(b"hdlr", &[&[0; 8], b"vide".as_slice(), &[0; 13]].concat());
        let reference =
            atom(b"dref", &[&words(&[0, 1], &[], &[], &[]), atom(b"url ", &[0, 0, 0, 1]).as_slice()].concat());
        let information = [
            atom(b"vmhd", &words(&[1, 0, 0], &[], &[], &[])),
            atom(b"dinf", &reference),
            atom(b"stbl", &self.table(first)),
        ];
        [header, handler, atom(b"minf", &information.concat())].concat()
    }

    fn table(&self, first: u32) -> Vec<u8> {
        let count = self.sizes.len() as u32;
        let (width, height) = (self.size.0 as u16, self.size.1 as u16);
        let mut entry = vec![0; 6];
        entry.extend(1u16.to_be_bytes());
        entry.extend([0; 16]);
        entry.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
        // 72 dots an inch both ways, one picture a sample.
        entry.extend(words(&[0x0048_0000, 0x0048_0000, 0], &[], &[], &[]));
        entry.extend(1u16.to_be_bytes());
        entry.extend([0; 32]);
        entry.extend([0, 24, 0xff, 0xff]);
        let description = [words(&[0, 1], &[], &[], &[]), atom(b"jpeg", &entry)].concat();
        [
            atom(b"stsd", &description),
            atom(b"stts", &words(&[0, 1, count, self.pause], &[], &[], &[])),
            atom(b"stsc", &words(&[0, 1, 1, count, 1], &[], &[], &[])),
            atom(b"stsz", &words(&[0, 0, count], &self.sizes, &[], &[])),
            atom(b"stco", &words(&[0, 1, first], &[], &[], &[])),
        ]
        .concat()
    }
}

/// The picture as it is: neither turned nor scaled.
const MATRIX: [u32; 9] = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000];

fn words(a: &[u32], b: &[u32], c: &[u32], d: &[u32]) -> Vec<u8> {
    [a, b, c, d].concat().into_iter().flat_map(u32::to_be_bytes).collect()
}

fn atom(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32 + 8).to_be_bytes(), name.as_slice(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the atoms in a row, which must fill it exactly.
    fn names(mut bytes: &[u8]) -> Vec<String> {
        let mut names = Vec::new();
        while !bytes.is_empty() {
            let length = u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
            names.push(String::from_utf8(bytes[4..8].to_vec()).unwrap());
            bytes = &bytes[length..];
        }
        names
    }

    #[test]
    fn the_table_points_at_the_pictures() {
        let mut video = Mp4::new(Duration::from_millis(250));
        video.push(b"first", (4, 6));
        video.push(b"second", (4, 6));
        let file = video.finish();
        assert_eq!(names(&file), ["ftyp", "mdat", "moov"]);
        let at = |name: &[u8]| file.windows(4).position(|part| part == name).unwrap() + 4;
        let word = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let first = word(at(b"stco") + 8);
        let sizes = at(b"stsz") + 12;
        assert_eq!(&file[first..first + word(sizes)], b"first");
        assert_eq!(&file[first + word(sizes)..first + word(sizes) + word(sizes + 4)], b"second");
    }
}
