<?php

declare(strict_types=1);

/** Nobody can be checked now: our trouble, not the visitor's. */
final class WaitroomKeysMissing extends Exception
{
}

/** The published keys, and the check of a signature. A key knows its one algorithm. */
final class WaitroomKeys
{
    /** What stands before a public key in DER (SubjectPublicKeyInfo). */
    private const P256 = '3059301306072a8648ce3d020106082a8648ce3d03010703420004';
    private const RSA = '300d06092a864886f70d0101010500';

    /** @param ?string $cache a file in a folder that only this site can write; null for fixed keys */
    public function __construct(private readonly string $url, private readonly ?string $cache, private array $keys = [])
    {
    }

    public static function fixed(string $jwks): self
    {
        return new self('', null, self::parse($jwks) ?? []);
    }

    /**
     * PHP forgets everything after each request, so the keys are in a file: fetched when first
     * needed, again every five minutes, and when a pass names a new one (at most every five
     * seconds). If a fetch fails, they stay as they were.
     */
    public function find(string $kid): ?array
    {
        if ($this->cache !== null) {
            $this->keys = $this->held();
            $age = time() - (int) @filemtime($this->cache);
            if ($age > 300 || (!isset($this->keys[$kid]) && ($age > 5 || $this->keys === []))) {
                @touch($this->cache); // one asks; the others go on with what there is
                $this->keys = $this->fetch() ?? $this->keys;
            }
            if ($this->keys === []) {
                throw new WaitroomKeysMissing('the keys of the waiting room could not be fetched');
            }
        }
        return $this->keys[$kid] ?? null;
    }

    private function held(): array
    {
        return self::parse((string) @file_get_contents($this->cache)) ?? [];
    }

    private function fetch(): ?array
    {
        $context = stream_context_create(['http' => ['timeout' => 5]]);
        $jwks = (string) @file_get_contents($this->url, false, $context, 0, 256 * 1024);
        $keys = self::parse($jwks);
        if ($keys !== null) {
            // Beside it and then in its place: nobody reads half a document.
            $new = $this->cache . '.' . bin2hex(random_bytes(8));
            file_put_contents($new, $jwks);
            rename($new, $this->cache);
        }
        return $keys;
    }

    /** Kinds that we do not know are left out, symmetric ones too. */
    private static function parse(string $jwks): ?array
    {
        $keys = [];
        foreach (json_decode($jwks, true)['keys'] ?? [] as $key) {
            $key += ['kty' => '', 'crv' => '', 'alg' => '', 'use' => 'sig', 'kid' => ''];
            $kind = "$key[kty] $key[crv] $key[alg] $key[use]";
            if (in_array($kind, ['EC P-256 ES256 sig', 'RSA  RS256 sig', 'OKP Ed25519 EdDSA sig'], true)) {
                $keys[$key['kid']] = $key;
            }
        }
        return $keys ?: null;
    }

    public static function verifies(array $key, string $signed, string $signature): bool
    {
        if ($key['alg'] === 'EdDSA') {
            return strlen($signature) === SODIUM_CRYPTO_SIGN_BYTES
                && sodium_crypto_sign_verify_detached($signature, $signed, self::decode($key['x']));
        }
        if ($key['alg'] === 'RS256') {
            $numbers = self::integer(self::decode($key['n'])) . self::integer(self::decode($key['e']));
            $public = self::tagged("\x03", "\0" . self::tagged("\x30", $numbers));
            $der = self::tagged("\x30", hex2bin(self::RSA) . $public);
        } else {
            $der = hex2bin(self::P256) . self::decode($key['x']) . self::decode($key['y']);
            if (strlen($signature) !== 64) {
                return false;
            }
            // A JWS holds r and s side by side; OpenSSL wants a sequence of two integers.
            $signature = self::tagged("\x30", implode(array_map(self::integer(...), str_split($signature, 32))));
        }
        $pem = "-----BEGIN PUBLIC KEY-----\n" . chunk_split(base64_encode($der), 64, "\n") . "-----END PUBLIC KEY-----\n";
        return openssl_verify($signed, $signature, $pem, OPENSSL_ALGO_SHA256) === 1;
    }

    private static function integer(string $bytes): string
    {
        $bytes = ltrim($bytes, "\0");
        return self::tagged("\x02", $bytes === '' || ord($bytes[0]) > 127 ? "\0$bytes" : $bytes);
    }

    private static function tagged(string $tag, string $value): string
    {
        $length = strlen($value);
        return $tag . match (true) {
            $length < 0x80 => chr($length),
            $length < 0x100 => "\x81" . chr($length),
            default => "\x82" . pack('n', $length),
        } . $value;
    }

    public static function encode(string $bytes): string
    {
        return rtrim(strtr(base64_encode($bytes), '+/', '-_'), '=');
    }

    public static function decode(string $text): string
    {
        return (string) base64_decode(strtr($text, '-_', '+/'), false);
    }
}
