<?php

declare(strict_types=1);

/**
 * A shop that lets in only those who hold a pass: `php -S 127.0.0.1:3000 index.php`
 *
 * WAITROOM_ROOM, WAITROOM_KEYS (…/.well-known/jwks.json), WAITROOM_KEYS_FILE (where they are
 * kept: a folder that only this site can write), WAITROOM_PAGE (where to wait); WAITROOM_DEV=1
 * over plain HTTP, where a browser takes no `__Host-` cookie.
 */
require __DIR__ . '/WaitroomKeys.php';
require __DIR__ . '/WaitroomPass.php';

/** The claims of whoever has a good pass; everybody else is answered here. */
function inside(): object
{
    $dev = (bool) getenv('WAITROOM_DEV');
    $room = (string) getenv('WAITROOM_ROOM');
    $cookieName = ($dev ? '' : '__Host-') . "wr-pass-$room";
    $cookie = fn (string $value, int $expires) => setcookie($cookieName, $value, [
        'expires' => $expires, 'path' => '/', 'httponly' => true, 'samesite' => 'Lax', 'secure' => !$dev,
    ]);
    $now = time();
    $arriving = $_GET['wr_pass'] ?? null;
    $pass = $arriving ?? $_SERVER['HTTP_WAITROOM_PASS'] ?? $_COOKIE[$cookieName] ?? null;
    // Behind a proxy of yours, take the address from what that proxy says.
    $shown = array_filter(
        ['ip' => $_SERVER['REMOTE_ADDR'], 'user_agent' => $_SERVER['HTTP_USER_AGENT'] ?? null],
        fn ($value) => $value !== null,
    );
    $keys = new WaitroomKeys((string) getenv('WAITROOM_KEYS'), (string) getenv('WAITROOM_KEYS_FILE'));
    try {
        if (!is_string($pass)) {
            throw new WaitroomRefused('pass_missing');
        }
        $claims = (new WaitroomPass($keys, $room, unseen: ['nonce']))->check($pass, $now, $shown);
    } catch (WaitroomRefused $refused) {
        $cookie('', 1);
        if (str_contains($_SERVER['HTTP_ACCEPT'] ?? '', 'text/html')) {
            redirect((string) getenv('WAITROOM_PAGE'));
        }
        http_response_code(403);
        header('Content-Type: application/json');
        header('Cache-Control: no-store');
        exit(json_encode(['code' => $refused->why, 'waiting_room' => getenv('WAITROOM_PAGE')]));
    } catch (WaitroomKeysMissing $missing) {
        error_log($missing->getMessage()); // never the pass
        http_response_code(503);
        header('Retry-After: 5');
        exit;
    }
    if ($arriving !== null) {
        // An address is copied, logged and sent as referrer: the pass moves to the cookie at once.
        $cookie($pass, $claims->exp);
        [$path, $query] = explode('?', $_SERVER['REQUEST_URI'], 2) + ['', ''];
        $rest = array_filter(explode('&', $query), fn ($pair) => !str_starts_with($pair, 'wr_pass='));
        redirect('/' . ltrim($path, '/\\') . ($rest ? '?' . implode('&', $rest) : ''));
    }
    return $claims;
}

function redirect(string $to): never
{
    header("Location: $to", true, 303);
    header('Cache-Control: no-store');
    header('Referrer-Policy: no-referrer');
    exit;
}

$claims = inside();
header('Content-Type: text/plain');
echo "Welcome, $claims->sub.\n"; // your shop goes here
