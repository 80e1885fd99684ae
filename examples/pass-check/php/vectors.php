<?php

// php vectors.php ../../../docs/vectors/passes.json: a line for each pass, first the good ones.

declare(strict_types=1);

require __DIR__ . '/WaitroomKeys.php';
require __DIR__ . '/WaitroomPass.php';

$vectors = json_decode(file_get_contents($argv[1]), true);
$checker = new WaitroomPass(WaitroomKeys::fixed(json_encode($vectors['jwks'])), $vectors['room']);
foreach ([...$vectors['good'], ...$vectors['refused']] as $case) {
    try {
        $checker->check($case['pass'], $vectors['now'], $case['presented'] ?? []);
        echo "accepted\n";
    } catch (WaitroomRefused $refused) {
        echo $refused->why, "\n";
    }
}
