// Checks passes of a waiting room inside nginx (njs 0.7.9 and later, as in Debian 12).
//
// The steps and their codes are those of docs/passes.md. ES256 and RS256 only: the WebCrypto of
// njs has no Ed25519, so keys for EdDSA are left out and their passes are refused.

import hashing from 'crypto';

const TICKET = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const TIME_MAX_S = 253402300799; // the end of the year 9999; more is milliseconds
const AHEAD_MAX_S = 300;

// What stands before a public key in DER (SubjectPublicKeyInfo).
const P256 = '3059301306072a8648ce3d020106082a8648ce3d03010703420004';
const RSA = '300d06092a864886f70d0101010500';
const ALGS = {
    ES256: { kty: 'EC', how: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } },
    RS256: { kty: 'RSA', how: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } },
};

/// The claims of `pass`, or an error with a `code`. `findKey(kid)` finds a published key; `shown`
/// is what the request shows: nonce, ip, user_agent; `unseen` names bindings that this server can
/// never see, such as a cookie of another host.
async function check(pass, findKey, room, now, shown, unseen) {
    if (pass.length > 4096) throw refused('too_long');
    const parts = pass.split('.');
    if (parts.length != 3 || !parts.every(isExact)) throw refused('malformed');
    const header = objectOf(parts[0], 'malformed');
    if ('crit' in header || 'b64' in header) throw refused('crit_unknown');
    if (header.typ !== 'JWT') throw refused('type_wrong');
    const key = typeof header.kid == 'string' ? await findKey(header.kid) : undefined;
    if (!key) throw refused('key_unknown');
    // The key says which algorithm it is for; the header never chooses.
    if (header.alg !== key.alg) throw refused('alg_wrong');
    if (!await verifies(key, parts)) throw refused('signature_wrong');
    const claims = claimsOf(parts[1]);
    if (claims.room !== room) throw refused('room_other');
    if (claims.iat > now + AHEAD_MAX_S) throw refused('not_yet');
    if (now >= claims.exp) throw refused('expired');
    checkBinding(claims, shown, unseen);
    return claims;
}

function refused(code) {
    const error = new Error('the pass is refused: ' + code);
    error.code = code;
    return error;
}

/// Finds `kid` in the text of a JWK set. Kinds that we do not know are left out.
function keyOf(jwks, kid) {
    const keys = JSON.parse(jwks).keys;
    return keys.find(key => key.kid === kid && (key.use || 'sig') == 'sig' && ALGS[key.alg]
        && ALGS[key.alg].kty == key.kty && (key.kty != 'EC' || key.crv == 'P-256'));
}

async function verifies(key, parts) {
    const how = ALGS[key.alg].how;
    const signature = Buffer.from(parts[2], 'base64url');
    if (key.alg == 'ES256' && signature.length != 64) return false;
    const spki = key.kty == 'EC' ? Buffer.concat([hex(P256), bytes(key.x), bytes(key.y)]) : rsaSpki(key);
    try {
        const imported = await crypto.subtle.importKey('spki', spki, how, false, ['verify']);
        return await crypto.subtle.verify(how, imported, signature, Buffer.from(parts[0] + '.' + parts[1]));
    } catch (e) {
        return false; // a signature of another length is an exception here
    }
}

function rsaSpki(key) {
    const numbers = Buffer.concat([integer(bytes(key.n)), integer(bytes(key.e))]);
    const bits = tagged(0x03, Buffer.concat([hex('00'), tagged(0x30, numbers)]));
    return tagged(0x30, Buffer.concat([hex(RSA), bits]));
}

function integer(number) {
    return tagged(0x02, number[0] > 127 ? Buffer.concat([hex('00'), number]) : number);
}

function tagged(tag, value) {
    const n = value.length;
    const length = n < 0x80 ? [n] : n < 0x100 ? [0x81, n] : [0x82, n >> 8, n & 0xff];
    return Buffer.concat([Buffer.from([tag].concat(length)), value]);
}

function claimsOf(payload) {
    const claims = objectOf(payload, 'claims_wrong');
    const good = typeof claims.sub == 'string' && TICKET.test(claims.sub)
        && typeof claims.room == 'string'
        && Number.isInteger(claims.iat) && Number.isInteger(claims.exp)
        && 0 <= claims.iat && claims.iat < claims.exp && claims.exp <= TIME_MAX_S
        && !('aud' in claims) && !('nbf' in claims)
        && (!('bnd' in claims) || isBinding(claims.bnd));
    if (!good) throw refused('claims_wrong');
    return claims;
}

function isBinding(bnd) {
    if (bnd === null || typeof bnd != 'object' || Array.isArray(bnd)) return false;
    const known = name => name == 'ip_bits'
        ? Number.isInteger(bnd[name]) && 0 <= bnd[name] && bnd[name] <= 255
        : ['nonce', 'ip', 'ua'].includes(name) && typeof bnd[name] == 'string';
    return Object.keys(bnd).every(known) && ('ip' in bnd) == ('ip_bits' in bnd);
}

function checkBinding(claims, shown, unseen) {
    const bnd = claims.bnd || {};
    const values = {
        nonce: shown.nonce,
        ip: shown.ip && bnd.ip && network(shown.ip, bnd.ip_bits),
        ua: shown.user_agent,
    };
    ['nonce', 'ip', 'ua'].filter(kind => kind in bnd && !unseen.includes(kind)).forEach(kind => {
        if (values[kind] === undefined) throw refused('binding_missing');
        const hash = hashing.createHash('sha256');
        hash.update('waitroom/v1/bind/' + kind + '\0' + claims.sub + '\0').update(values[kind]);
        if (hash.digest().slice(0, 16).toString('base64url') !== bnd[kind]) throw refused('binding_wrong');
    });
}

/// Family, prefix length, and the address with all later bits cleared.
function network(ip, bits) {
    const v4 = ip.replace(/^::ffff:/i, '');
    const address = v4.includes('.') ? v4.split('.').map(Number) : ipv6Bytes(ip);
    const kept = address.map((byte, at) => byte & (0xff00 >> Math.min(8, Math.max(0, bits - 8 * at))));
    return Buffer.from([address.length == 4 ? 4 : 6, bits].concat(kept));
}

function ipv6Bytes(ip) {
    const halves = ip.split('::').map(half => half ? half.split(':') : []);
    const back = halves[1] || [];
    const words = halves[0].concat(Array(8 - halves[0].length - back.length).fill('0'), back);
    return words.reduce((all, word) => all.concat([parseInt(word, 16) >> 8, parseInt(word, 16) & 0xff]), []);
}

/// Decoding and encoding again gives the same text, or it had padding or stray bits.
function isExact(part) {
    return Buffer.from(part, 'base64url').toString('base64url') === part;
}

function objectOf(part, code) {
    let value = null;
    try {
        value = JSON.parse(Buffer.from(part, 'base64url').toString());
    } catch (e) {
        // refused below
    }
    if (value === null || typeof value != 'object' || Array.isArray(value)) throw refused(code);
    return value;
}

function bytes(text) {
    return Buffer.from(text, 'base64url');
}

function hex(text) {
    return Buffer.from(text, 'hex');
}

export default { check, keyOf };
