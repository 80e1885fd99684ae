//! Colours, and whether people can read one on another (WCAG 2.2, relative luminance).

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    pub red: u8,
    pub green: u8,
    pub blue: u8,
}

pub const WHITE: Colour = Colour { red: 255, green: 255, blue: 255 };
pub const BLACK: Colour = Colour { red: 0, green: 0, blue: 0 };

impl Colour {
    /// `#rgb` or `#rrggbb`. Nothing else: what comes out of here stands in a style.
    pub fn parse(text: &str) -> Option<Colour> {
        let digits = text.strip_prefix('#')?;
        if !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
            return None;
        }
        let part = |from: usize, to: usize| u8::from_str_radix(&digits[from..to], 16).ok();
        match digits.len() {
            3 => Some(Colour {
                red: part(0, 1)? * 17,
                green: part(1, 2)? * 17,
                blue: part(2, 3)? * 17,
            }),
            6 => Some(Colour { red: part(0, 2)?, green: part(2, 4)?, blue: part(4, 6)? }),
            _ => None,
        }
    }

    pub fn css(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.red, self.green, self.blue)
    }

    fn luminance(self) -> f64 {
        let linear = |channel: u8| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(self.red) + 0.7152 * linear(self.green) + 0.0722 * linear(self.blue)
    }

    /// From 1 (the same) to 21 (black on white).
    pub fn contrast(self, other: Colour) -> f64 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    /// So many hundredths of the way to `other`.
    pub fn towards(self, other: Colour, hundredths: u32) -> Colour {
        let mix = |from: u8, to: u8| {
            let sum = u32::from(from) * (100 - hundredths) + u32::from(to) * hundredths;
            u8::try_from((sum + 50) / 100).expect("a mean of two bytes is a byte")
        };
        Colour {
            red: mix(self.red, other.red),
            green: mix(self.green, other.green),
            blue: mix(self.blue, other.blue),
        }
    }

    /// The nearest colour on the way to `end` that reads with `ratio` on all of `grounds`.
    pub fn until_readable(self, end: Colour, grounds: &[Colour], ratio: f64) -> Option<Colour> {
        let reads = |it: &Colour| grounds.iter().all(|ground| it.contrast(*ground) >= ratio);
        (0..=100).map(|step| self.towards(end, step)).find(reads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrast_is_that_of_the_guidelines() {
        assert!((BLACK.contrast(WHITE) - 21.0).abs() < 0.001);
        let grey = Colour::parse("#767676").expect("a colour");
        assert!((grey.contrast(WHITE) - 4.54).abs() < 0.01, "{}", grey.contrast(WHITE));
        assert!((WHITE.contrast(grey) - grey.contrast(WHITE)).abs() < f64::EPSILON);
    }

    #[test]
    fn only_colours_are_colours() {
        assert_eq!(Colour::parse("#0af").map(Colour::css).as_deref(), Some("#00aaff"));
        for text in ["", "#", "0af", "#12", "#12345", "#gggggg", "red", "#fff;}", "#ééé", "#+12+12"]
        {
            assert_eq!(Colour::parse(text), None, "{text}");
        }
    }
}
