<?php
// Verify deliveries with PHP 8 or newer, without packages:
// PENSTOCK_SIGNING_SECRET=whsec_... php -S 127.0.0.1:9000 receive.php

declare(strict_types=1);

const TOLERANCE_S = 300;

/** Return whether Penstock signed these exact bytes less than five minutes ago. */
function is_valid(string $key, string $id, string $sent, string $signatures, string $body): bool
{
    if ($id === '' || preg_match('/^\d{1,11}$/D', $sent) !== 1 || abs(time() - (int) $sent) > TOLERANCE_S) {
        return false;
    }
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$sent.$body", $key, binary: true));
    foreach (explode(' ', $signatures) as $given) {
        if (hash_equals($expected, $given)) { // takes constant time
            return true;
        }
    }
    return false;
}

$secret = preg_replace('/^whsec_/', '', (string) getenv('PENSTOCK_SIGNING_SECRET'));
$key = base64_decode($secret, strict: true);
if ($key === false || $key === '') {
    throw new RuntimeException('PENSTOCK_SIGNING_SECRET: needs whsec_ and base64');
}
$id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
$valid = is_valid(
    $key,
    $id,
    $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '',
    $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '',
    file_get_contents('php://input'), // verify the body before it is parsed
);
http_response_code($valid ? 204 : 401);
if ($valid) {
    error_log("received $id"); // handle each id once: a retry has the id of the first attempt
}
