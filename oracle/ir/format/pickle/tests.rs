//! Pickles of every protocol, and all that may be wrong with one.

use super::super::objects::Item;
use super::*;

/// One value as CPython 3.11 writes it in each protocol: `{"i": [1, -1, 255, 65535, 70000, -2**31, 2**40, -2**63,
/// 2**63], "o": [1.5, None, True, False, "é"], "t": [(), (1,), (1, 2, 3), (1, 2, 3, 4)], "s": {7}, "d": [s, s]}` with
/// `s = {"f": 3}`.
const WRITTEN: &[(u8, &str)] = &[
    (
        2,
        "80027d71002858010000006971015d7102284b014affffffff4bff4dffff4a701101004a000000808a060000000000018a08\
         00000000000000808a090000000000000080006558010000006f71035d710428473ff80000000000004e88895802000000c3\
         a971056558010000007471065d710728294b018571084b014b024b03877109284b014b024b034b0474710a65580100000073\
         710b635f5f6275696c74696e5f5f0a7365740a710c5d710d4b076185710e52710f58010000006471105d7111287d71125801\
         0000006671134b0373681265752e",
    ),
    (
        3,
        "80037d71002858010000006971015d7102284b014affffffff4bff4dffff4a701101004a000000808a060000000000018a08\
         00000000000000808a090000000000000080006558010000006f71035d710428473ff80000000000004e88895802000000c3\
         a971056558010000007471065d710728294b018571084b014b024b03877109284b014b024b034b0474710a65580100000073\
         710b636275696c74696e730a7365740a710c5d710d4b076185710e52710f58010000006471105d7111287d71125801000000\
         6671134b0373681265752e",
    ),
    (
        4,
        "80049596000000000000007d94288c0169945d94284b014affffffff4bff4dffff4a701101004a000000808a060000000000\
         018a0800000000000000808a09000000000000008000658c016f945d9428473ff80000000000004e88898c02c3a994658c01\
         74945d9428294b0185944b014b024b038794284b014b024b034b047494658c0173948f94284b07908c0164945d94287d948c\
         0166944b0373680f65752e",
    ),
    (
        5,
        "80059596000000000000007d94288c0169945d94284b014affffffff4bff4dffff4a701101004a000000808a060000000000\
         018a0800000000000000808a09000000000000008000658c016f945d9428473ff80000000000004e88898c02c3a994658c01\
         74945d9428294b0185944b014b024b038794284b014b024b034b047494658c0173948f94284b07908c0164945d94287d948c\
         0166944b0373680f65752e",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(char::is_ascii_hexdigit).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks_exact(2).map(byte).collect()
}

fn read_all(bytes: &[u8]) -> Result<Objects, PickleError> {
    read(bytes, &Allowance::new(1 << 16))
}

/// What is wrong with a pickle of these opcodes.
fn error(opcodes: &[u8]) -> String {
    read_all(&[b"\x80\x02", opcodes].concat()).unwrap_err().to_string()
}

#[test]
fn every_protocol_gives_the_same() {
    for (protocol, hex) in WRITTEN {
        let objects = read_all(&bytes(hex)).unwrap_or_else(|error| panic!("{protocol}: {error}"));
        let items = |key: &str| objects.root().get(key).unwrap().items().unwrap().collect::<Vec<Item>>();
        let integers: Vec<_> = items("i").into_iter().map(Item::integer).collect();
        let expected = [1, -1, 255, 65535, 70000, -(1 << 31), 1 << 40, i64::MIN];
        assert_eq!(integers[..8], expected.map(Some), "{protocol}");
        assert_eq!(
            (integers[8], items("i")[8].kind()),
            (None, "a whole number"),
            "{protocol}: 2**63 is too wide"
        );
        let others = items("o");
        let kinds: Vec<_> = others.iter().map(|item| item.kind()).collect();
        assert_eq!(kinds, ["a number", "None", "a truth value", "a truth value", "text"], "{protocol}");
        assert_eq!(
            (others[2].truth(), others[3].truth(), others[4].text()),
            (Some(true), Some(false), Some("é"))
        );
        let lengths: Vec<_> = items("t").into_iter().map(Item::length).collect();
        assert_eq!(lengths, [0, 1, 3, 4].map(Some), "{protocol}");
        let last: Vec<_> = items("t")[3].items().unwrap().map(Item::integer).collect();
        assert_eq!(last, [1, 2, 3, 4].map(Some), "{protocol}");
        assert_eq!(items("s")[0].integer(), Some(7), "{protocol}");
        assert!(items("d").iter().all(|item| item.get("f").unwrap().integer() == Some(3)), "{protocol}");
    }
}

#[test]
fn what_is_cut_off_is_an_error_with_its_byte() {
    for (protocol, hex) in WRITTEN {
        let whole = bytes(hex);
        for end in 0..whole.len() {
            let error = read_all(&whole[..end]).unwrap_err();
            assert!(error.offset <= end, "{protocol}, {end}: {error}");
        }
        let error = read_all(&[&whole[..], b"x"].concat()).unwrap_err().to_string();
        assert!(error.ends_with("1 bytes follow the end of the pickle"), "{error}");
    }
}

#[test]
fn a_class_is_named_and_never_made() {
    // os.system("id"), in the two ways to name a function.
    let error_of = |opcodes: &[u8]| read_all(&[b"\x80\x04", opcodes].concat()).unwrap_err();
    for opcodes in [&b"cos\nsystem\nX\x02\0\0\0id\x85R."[..], b"\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R."]
    {
        let error = error_of(opcodes);
        assert_eq!(error.needs.as_deref(), Some("os.system"));
        assert!(error.to_string().contains("needs os.system, and nothing"), "{error}");
    }
    assert_eq!(error_of(b"cos\nsystem\n.").offset, 2);
    assert!(error(b"(X\x02\0\0\0idios\nsystem\n.").contains("needs os.system"));
    assert!(error(b"}Q.").contains("as torch.save does for tensors"));
    for opcode in [b'b', 0x81, 0x92, b'o'] {
        assert!(error(&[b'}', b'}', opcode]).contains("an instance of a class"));
    }
}

#[test]
fn what_stands_for_data_is_data() {
    let list = read_all(b"\x80\x02ctorch.jit._pickle\nbuild_intlist\n](K\x01K\x02e\x85R.").unwrap();
    assert_eq!(list.root().items().unwrap().map(Item::integer).collect::<Vec<_>>(), [Some(1), Some(2)]);
    let dictionary = read_all(b"\x80\x02ccollections\nOrderedDict\n)R(X\x01\0\0\0aK\x05u.").unwrap();
    assert_eq!(dictionary.root().get("a").unwrap().integer(), Some(5));
    assert!(error(b"ccollections\nOrderedDict\nK\x01\x85R.").contains("other arguments"));
    assert!(error(b"ccollections\nOrderedDict\n.").contains("as if it were data"));
    assert!(error(b"ccollections\nOrderedDict\nK\x01a.").contains("adds items to a class"));
}

#[test]
fn nonsense_is_refused() {
    let cases: &[(&[u8], &str)] = &[
        (b".", "takes from the stack"),
        (b"e.", "up to a mark that is not there"),
        (b"](a.", "takes from the stack what is not there"),
        (b"K\x01K\x02a.", "no list"),
        (b"](K\x01u.", "has no value"),
        (b"](K\x01K\x02u.", "no dictionary"),
        (b"h\x05.", "recalls object 5"),
        (b"q\x05.", "empty stack"),
        (b"K\x01K\x01R.", "no function"),
        (b"\xff", "0xff is no opcode"),
        (b"I1\n.", "protocol 0"),
        (b"X\x01\0\0\0\xff.", "not UTF-8"),
        (b"\x80\x09", "protocol 9"),
        (b"\x82\x01.", "a number that only its writer knows"),
        (b"\x97.", "outside of the file"),
        (b"\x95\xff\xff\xff\xff\xff\xff\xff\x7f", "within a frame"),
    ];
    for (opcodes, why) in cases {
        let error = error(opcodes);
        assert!(error.contains(why), "{opcodes:?}: {error}");
    }
}

/// Lengths that no file has, and what a few bytes can ask for.
#[test]
fn a_short_file_cannot_ask_for_much() {
    for opcode in [&b"\x8d"[..], b"\x8e", b"\x96"] {
        assert!(error(&[opcode, &[0xff; 8]].concat()).contains("too early"));
    }
    for opcode in [b'X', b'B', b'T', 0x8b] {
        assert!(error(&[opcode, 0, 0, 0, 0x40]).contains("too early"), "a gigabyte");
    }
    // Empty lists, copies, marks, what is remembered: one byte each.
    for opcode in *b"]N2(\x94" {
        let many = [&b"\x80\x04]"[..], &vec![opcode; 1 << 20]].concat();
        assert!(read_all(&many).unwrap_err().message.contains("more than 65536 objects"), "{opcode}");
    }
    // The memo has no place for each index below the highest.
    assert!(read_all(b"\x80\x02]r\xff\xff\xff\xff.").is_ok());
}

#[test]
fn depth_and_cycles_cost_no_stack() {
    let deep = [&b"\x80\x02"[..], &vec![b']'; 60_000 / 2], &vec![b'a'; 60_000 / 2 - 1], b"."].concat();
    assert_eq!(read_all(&deep).unwrap().root().length(), Some(1));
    let own = read_all(b"\x80\x02]q\0h\0a.").unwrap();
    let inner = own.root().items().unwrap().next().unwrap();
    assert_eq!(inner.items().unwrap().next().unwrap().length(), Some(1), "a list that holds itself");
}

/// Doubled 60 times, a list has 2^60 items to whoever follows all of them, and 60 to whoever does not.
#[test]
fn what_is_shared_is_held_once() {
    let mut bomb = b"\x80\x02]q\0".to_vec();
    for level in 1..=60u8 {
        bomb.extend([b']', b'q', level, b'(', b'h', level - 1, b'h', level - 1, b'e']);
    }
    bomb.push(b'.');
    assert_eq!(read_all(&bomb).unwrap().root().length(), Some(2));
}

#[test]
fn any_bytes_give_an_answer() {
    let mut state = 7u64;
    let mut draw = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize
    };
    let opcodes = b"\x80\x81\x85\x86\x87\x88\x8a\x8c\x8f\x90\x91\x93\x94\x95()].012GJKMNXabcdehijlqrstuRQ}";
    for _ in 0..20_000 {
        let mut bytes = b"\x80\x04".to_vec();
        for _ in 0..draw() % 40 {
            bytes.push(if draw() % 3 == 0 { draw() as u8 } else { opcodes[draw() % opcodes.len()] });
        }
        if let Err(error) = read_all(&bytes) {
            assert!(error.offset <= bytes.len());
        }
    }
    for (_, hex) in WRITTEN {
        let whole = bytes(hex);
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] = draw() as u8;
            let _ = read_all(&changed);
        }
    }
}
