//! Vectors that others published for the primitives, each with its source.

use serde_json::{Value, json};

use super::{File, file_of, hex, vector};

pub(super) fn file() -> File {
    let mut vectors = Vec::from(ciphers());
    vectors.extend(masks());
    vectors.extend(blake3());
    vectors.extend(curves());
    vectors.extend(noise());
    let about = "Published vectors, so that an implementer knows the primitives are right before the rest.";
    file_of("published.json", about, "PROTO §1.1, §1.2, §3.1, §3.4, §3.7, §5.6, §5.7", &vectors)
}

fn ciphers() -> [Value; 2] {
    let sunscreen =
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, \
                      sunscreen would be it.";
    let xchacha = vector(
        "XChaCha20-Poly1305",
        json!({
            "source": "draft-irtf-cfrg-xchacha-03, appendix A.3.1",
            "key": "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
            "nonce": "404142434445464748494a4b4c4d4e4f5051525354555657",
            "aad": "50515253c0c1c2c3c4c5c6c7",
            "plaintext": hex(sunscreen),
        }),
        json!({
            "sealed": "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f4eda7e39\
                       ae64c6708c54c216cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3ff\
                       f921f9664c97637da9768812f615c68b13b52ec0875924c1c7987947deafd8780acf49",
        }),
    );
    let aes = vector(
        "AES-256-GCM",
        json!({
            "source": "McGrew and Viega, The Galois/Counter Mode of Operation, test case 16",
            "key": "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
            "nonce": "cafebabefacedbaddecaf888",
            "aad": "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            "plaintext": "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525\
                          b16aedf5aa0de657ba637b39",
        }),
        json!({
            "sealed": "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838\
                       c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b",
        }),
    );
    [xchacha, aes]
}

fn masks() -> [Value; 2] {
    let chacha = json!({
        "source": "RFC 9001, appendix A.5",
        "header_key": "25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4",
        "sample": "5e5cd55c41f69080575d7999c25a5bfb",
        "suite": 1,
    });
    let aes = json!({
        "source": "FIPS 197, appendix C.3; the mask is the beginning of the ciphertext",
        "header_key": "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "sample": "00112233445566778899aabbccddeeff",
        "suite": 2,
    });
    [
        vector("header protection", chacha, json!({ "mask": "aefefe7d03" })),
        vector("header protection", aes, json!({ "mask": "8ea2b7ca51" })),
    ]
}

/// Input length, hash, keyed hash, derived key; 32 bytes each.
const BLAKE3: [(usize, &str, &str, &str); 5] = [
    (
        0,
        "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        "92b2b75604ed3c761f9d6f62392c8a9227ad0ea3f09573e783f1498a4ed60d26",
        "2cc39783c223154fea8dfb7c1b1660f2ac2dcbd1c1de8277b0b0dd39b7e50d7d",
    ),
    (
        1,
        "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
        "6d7878dfff2f485635d39013278ae14f1454b8c0a3a2d34bc1ab38228a80c95b",
        "b3e2e340a117a499c6cf2398a19ee0d29cca2bb7404c73063382693bf66cb06c",
    ),
    (
        1024,
        "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
        "75c46f6f3d9eb4f55ecaaee480db732e6c2105546f1e675003687c31719c7ba4",
        "7356cd7720d5b66b6d0697eb3177d9f8d73a4a5c5e968896eb6a689684302706",
    ),
    (
        1025,
        "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
        "357dc55de0c7e382c900fd6e320acc04146be01db6a8ce7210b7189bd664ea69",
        "effaa245f065fbf82ac186839a249707c3bddf6d3fdda22d1b95a3c970379bcb",
    ),
    (
        7169,
        "a003fc7a51754a9b3c7fae0367ab3d782dccf28855a03d435f8cfe74605e7817",
        "ed9b1a922c046fdb3d423ae34e143b05ca1bf28b710432857bf738bcedbfa511",
        "554b0a5efea9ef183f2f9b931b7497995d9eb26f5c5c6dad2b97d62fc5ac31d9",
    ),
];

fn blake3() -> Vec<Value> {
    let each = |(len, hash, keyed, derived): (usize, &str, &str, &str)| {
        let given = json!({
            "source": "BLAKE3-team/BLAKE3, test_vectors/test_vectors.json; byte number i of the input is i mod 251",
            "input_len": len,
            "key": hex(b"whats the Elvish word for friend"),
            "context": "BLAKE3 2019-12-27 16:29:52 test vectors context",
        });
        vector("BLAKE3", given, json!({ "hash": hash, "keyed": keyed, "derive_key": derived }))
    };
    BLAKE3.map(each).into()
}

fn curves() -> Vec<Value> {
    let x25519 = |source: &str, secret: &str, public: &str, shared: &str| {
        let given = json!({ "source": source, "secret": secret, "public": public });
        vector("X25519", given, json!({ "shared": shared }))
    };
    let ed25519 = |test: u8, seed: &str, public: &str| {
        let given = json!({ "source": format!("RFC 8032, section 7.1, TEST {test}"), "seed": seed });
        vector("Ed25519 public key", given, json!({ "peer_id": public }))
    };
    vec![
        x25519(
            "RFC 7748, section 5.2, first vector",
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        x25519(
            "RFC 7748, section 5.2, second vector",
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
        x25519(
            "RFC 7748, section 6.1",
            "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
            "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
            "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742",
        ),
        ed25519(
            1,
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        ),
        ed25519(
            2,
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        ),
    ]
}

fn noise() -> [Value; 2] {
    [cacophony(), snow()]
}

fn cacophony() -> Value {
    let given = json!({
        "source": "haskell-cryptography/cacophony, vectors/cacophony.txt, Noise_XX_25519_ChaChaPoly_BLAKE2s",
        "prologue": "4a6f686e2047616c74",
        "init_static": "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
        "init_ephemeral": "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
        "resp_static": "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
        "resp_ephemeral": "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
        "payloads": [
            "4c756477696720766f6e204d69736573", "4d757272617920526f746862617264", "462e20412e20486179656b",
            "4361726c204d656e676572", "4a65616e2d426170746973746520536179",
        ],
    });
    let gives = json!({
        "h": "6c4c56cf71612f72d05ceb96c0155e6f4ea54a26b504c93de632a2db4a49d200",
        "messages": [
            "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79444c756477696720766f6e204d69736573",
            "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088437c365eb362a1c991b0557fe8a7fb187d99346765d93e\
             c63db6c1b01504ebeec55a2298d2dbff80eff034d20595153f63a196a6cead1e11b2bb13e336fa13616dd3e8b0a070c882ed3f1a78c7\
             c06c93",
            "46c3307de83b014258717d97781c1f50936d8b7d50c0722a1739654d10392d415b670c114f79b9a4f80541570f77ce88802efa4220cf\
             f733e7b5668ba38059ec904b4b8eef9448085faf51",
            "d5e83adfaac5dc324a68f1862df54549e56d209fba707205f328b2",
            "d102c9029b1f55c788f561ba7737afbccef9c9f1bf2f238167fd40ba9c1c134867",
        ],
    });
    vector("Noise XX", given, gives)
}

fn snow() -> Value {
    let given = json!({
        "source": "mcginty/snow, tests/vectors/snow.txt, Noise_XX_25519_ChaChaPoly_BLAKE2s",
        "prologue": "5468657265206973206e6f20726967687420616e642077726f6e672e2054686572652773206f6e6c792066756e20616e6420\
                     626f72696e672e",
        "init_static": "8a3165449030548b6fbea439622cf8eccfda9098360f497381f1fc4b239cc629",
        "init_ephemeral": "868b61a52b9891cb69a723b53834e97cf34a0d65937fcf6ba89a945e22a624e0",
        "resp_static": "4b29748ce2d03e99813d870c67691402a1f5e09cfded4ccb55111a7aa407ed3b",
        "resp_ephemeral": "256bdfc5df09e6fc9ff7b31d670a9fbdae5ae5b9f989dba907e77823529c528e",
        "payloads": [
            "c0a708f1b57fb2ff42e901cce5871b2a51ff801c067eafcb03d0d7b201340527",
            "7aa1a8a592db2e6456694064f6564c006f8b2b2481af05036992b088556f3047",
            "c51d9b0d96e14f167e83c5154b2daff194ef59a9c09ad818c35ee7c5f476c3ef",
        ],
    });
    let gives = json!({
        "messages": [
            "063bf5a9800084985cb20a711ff8efb4f355eff3df009e8c26e0ecb7affae336c0a708f1b57fb2ff42e901cce5871b2a51ff801c067e\
             afcb03d0d7b201340527",
            "36c8607da3294b23a7aa3a6ac9ee0650838c0e1fb8849978896f9903b330d9035b08d1a88cb80ea36d06c7ed96b3a6c3c648be604bce\
             bfd82f6cbd79763785003d95c4f29c5104d40121c987aef5b4a485a59238136e732d12193b6b6aa556ae1cecd4a39e4259bc804fa8d8\
             016e5de4be3c2d6e75a75f5fa0cbff614b8cdd88",
            "a5a0d7616374f0a6caff8171c8a6efeebe12a5de59aa9248db14dd9f620b847ad2d752f065d1275990e1716b6bcf6297646145a5950a\
             99e035d302b46a4d9ed5a852cda3490454721cd77dc4b38ac42eda2f03048d173d70797b618400149131",
        ],
    });
    vector("Noise XX", given, gives)
}
