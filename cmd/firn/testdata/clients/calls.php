<?php
// Makes calls of PHP's clients to the server at 127.0.0.1:PORT. The calls are the other arguments;
// of each it prints what comes back.
require 'Predis/autoload.php';

$port = (int) $argv[1];
$redis = new Redis();
$redis->connect('127.0.0.1', $port);
$predis = new Predis\Client("tcp://127.0.0.1:$port");
foreach (array_slice($argv, 2) as $call) {
    try {
        $answer = eval("return $call;");
        echo 'ok ', json_encode($answer), "\n";
    } catch (Throwable $e) {
        echo 'error ', str_replace("\n", ' ', $e->getMessage()), "\n";
    }
}
