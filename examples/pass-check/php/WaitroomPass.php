<?php

declare(strict_types=1);

/**
 * Checks a pass of a waiting room. Copy this file and WaitroomKeys.php; they need the extensions
 * `openssl` and `sodium`, which come with PHP, and no package.
 *
 * The steps and their codes are those of docs/passes.md.
 */
final class WaitroomRefused extends Exception
{
    public function __construct(public readonly string $why)
    {
        parent::__construct("the pass is refused: $why");
    }
}

final class WaitroomPass
{
    private const TICKET = '/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/D';
    private const TIME_MAX_S = 253402300799; // the end of the year 9999; more is milliseconds
    private const AHEAD_MAX_S = 300;

    /** @param string[] $unseen bindings that this server can never see, such as a cookie of another host */
    public function __construct(
        private readonly WaitroomKeys $keys,
        private readonly string $room,
        private readonly array $unseen = [],
        private readonly int $leeway = 0,
    ) {
    }

    /**
     * The claims of the pass, or WaitroomRefused.
     *
     * @param array{nonce?: string, ip?: string, user_agent?: string} $shown what the request shows
     */
    public function check(string $pass, int $now, array $shown): object
    {
        if (strlen($pass) > 4096) {
            throw new WaitroomRefused('too_long');
        }
        $parts = explode('.', $pass);
        if (count($parts) !== 3) {
            throw new WaitroomRefused('malformed');
        }
        [$head, $payload, $signature] = array_map(self::decode(...), $parts);
        $header = self::object($head, 'malformed');
        if (property_exists($header, 'crit') || property_exists($header, 'b64')) {
            throw new WaitroomRefused('crit_unknown');
        }
        if (($header->typ ?? null) !== 'JWT') {
            throw new WaitroomRefused('type_wrong');
        }
        $kid = $header->kid ?? null;
        $key = is_string($kid) ? $this->keys->find($kid) : null;
        if ($key === null) {
            throw new WaitroomRefused('key_unknown');
        }
        // The key says which algorithm it is for; the header never chooses.
        if (($header->alg ?? null) !== $key['alg']) {
            throw new WaitroomRefused('alg_wrong');
        }
        if (!WaitroomKeys::verifies($key, "$parts[0].$parts[1]", $signature)) {
            throw new WaitroomRefused('signature_wrong');
        }
        $claims = self::claims($payload);
        if ($claims->room !== $this->room) {
            throw new WaitroomRefused('room_other');
        }
        if ($claims->iat > $now + self::AHEAD_MAX_S) {
            throw new WaitroomRefused('not_yet');
        }
        if ($now >= $claims->exp + $this->leeway) {
            throw new WaitroomRefused('expired');
        }
        $this->checkBinding($claims, $shown);
        return $claims;
    }

    private static function claims(string $payload): object
    {
        $claims = self::object($payload, 'claims_wrong');
        $good = is_string($claims->sub ?? null) && preg_match(self::TICKET, $claims->sub)
            && is_string($claims->room ?? null)
            && is_int($claims->iat ?? null) && is_int($claims->exp ?? null)
            && 0 <= $claims->iat && $claims->iat < $claims->exp && $claims->exp <= self::TIME_MAX_S
            && !property_exists($claims, 'aud') && !property_exists($claims, 'nbf')
            && (!property_exists($claims, 'bnd') || self::isBinding($claims->bnd));
        return $good ? $claims : throw new WaitroomRefused('claims_wrong');
    }

    private static function isBinding(mixed $bnd): bool
    {
        $known = ['nonce' => is_string(...), 'ip' => is_string(...), 'ua' => is_string(...),
            'ip_bits' => fn ($bits) => is_int($bits) && 0 <= $bits && $bits <= 255];
        if (!is_object($bnd)) {
            return false;
        }
        foreach (get_object_vars($bnd) as $name => $value) {
            if (!isset($known[$name]) || !$known[$name]($value)) {
                return false;
            }
        }
        return isset($bnd->ip) === isset($bnd->ip_bits);
    }

    private function checkBinding(object $claims, array $shown): void
    {
        $bnd = $claims->bnd ?? new stdClass();
        $values = [
            'nonce' => $shown['nonce'] ?? null,
            'ip' => isset($bnd->ip, $shown['ip']) ? self::network($shown['ip'], $bnd->ip_bits) : null,
            'ua' => $shown['user_agent'] ?? null,
        ];
        foreach ($values as $kind => $value) {
            if (!isset($bnd->$kind) || in_array($kind, $this->unseen, true)) {
                continue;
            }
            if ($value === null) {
                throw new WaitroomRefused('binding_missing');
            }
            $digest = hash('sha256', "waitroom/v1/bind/$kind\0$claims->sub\0$value", true);
            if (!hash_equals(WaitroomKeys::encode(substr($digest, 0, 16)), $bnd->$kind)) {
                throw new WaitroomRefused('binding_wrong');
            }
        }
    }

    /** Family, prefix length, and the address with all later bits cleared. */
    private static function network(string $ip, int $bits): string
    {
        $bytes = preg_replace('/^\0{10}\xff\xff(?=.{4}$)/s', '', (string) inet_pton($ip));
        $kept = '';
        foreach (str_split($bytes) as $at => $byte) {
            $kept .= chr(ord($byte) & (0xff00 >> max(0, min(8, $bits - 8 * $at))));
        }
        return chr(strlen($bytes) === 4 ? 4 : 6) . chr($bits) . $kept;
    }

    private static function object(string $text, string $code): object
    {
        $value = json_decode($text, false, 64);
        return is_object($value) ? $value : throw new WaitroomRefused($code);
    }

    /** Decoding and encoding again gives the same text, or it had padding or stray bits. */
    private static function decode(string $part): string
    {
        $decoded = WaitroomKeys::decode($part);
        return WaitroomKeys::encode($decoded) === $part ? $decoded : throw new WaitroomRefused('malformed');
    }
}
