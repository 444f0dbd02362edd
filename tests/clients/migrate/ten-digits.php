<?php
// the page's lines

$redis = new Redis();
$redis->connect('localhost', 6379);
foreach ([['zoe', 5], ['ann', 15], ['bob', 7], ['zoe', 10]] as [$user, $points]) {
    add($redis, $user, $points);
    sleep(1);
}
echo json_encode(top($redis, 10)), "\n"; // {"ann":15,"zoe":15,"bob":7}
