"""Everyday words for the classes of ImageNet 2012, by their place in the order of their WordNet numbers.

A class that is not listed is called by its first WordNet name. Classes of one word count together: 118 breeds
are a dog. What a classifier says of any flat shape, or nobody would say, is never said (``-``).
"""

from collections.abc import Sequence

from remeasure.errors import RemeasureError

# Class or classes | word | first WordNet name of the first class, so that a shifted list is noticed.
TABLE = """
0-1 | fish | tench
2-4 | shark | great white shark
5-6 | ray | electric ray
7 | rooster | cock
10-20 | bird | brambling
22 | eagle | bald eagle
24 | owl | great grey owl
25-29 | salamander | European fire salamander
30-32 | frog | bullfrog
33-37 | turtle | loggerhead
38-48 | lizard | banded gecko
49-50 | crocodile | African crocodile
51 | dinosaur | triceratops
52-68 | snake | thunder snake
70 | spider | harvestman
72-77 | spider | black and gold garden spider
80-83 | bird | black grouse
85-96 | bird | quail
97 | duck | drake
98 | duck | red-breasted merganser
100 | swan | black swan
101 | elephant | tusker
111 | worm | nematode
115 | slug | sea slug
118-121 | crab | Dungeness crab
122-124 | lobster | American lobster
127-128 | stork | white stork
131-132 | heron | little blue heron
133 | bird | bittern
135-143 | bird | limpkin
145 | penguin | king penguin
147-148 | whale | grey whale
151-268 | dog | Chihuahua
269-271 | wolf | timber wolf
273-275 | wild dog | dingo
277-280 | fox | red fox
281-285 | cat | tabby
286 | mountain lion | cougar
294-297 | bear | brown bear
300-307 | beetle | tiger beetle
312 | insect | cricket
316-318 | insect | cicada
319-320 | dragonfly | dragonfly
321-326 | butterfly | admiral
330-332 | rabbit | wood rabbit
335 | squirrel | fox squirrel
339 | horse | sorrel
341 | pig | hog
342-343 | wild boar | wild boar
346 | buffalo | water buffalo
348-349 | sheep | ram
351-353 | antelope | hartebeest
354 | camel | Arabian camel
358-359 | ferret | polecat
364 | sloth | three-toed sloth
365-368 | ape | orangutan
369-382 | monkey | siamang
383-384 | lemur | Madagascar cat
385-386 | elephant | Indian elephant
387-388 | panda | lesser panda
389-397 | fish | barracouta
402 | guitar | acoustic guitar
404 | airplane | airliner
408 | vehicle | amphibian
409 | clock | analog clock
412 | trash can | ashcan
418 | pen | ballpoint
419 | - | Band Aid
421 | railing | bannister
424 | shop | barbershop
428 | wheelbarrow | barrow
436 | car | beach wagon
437 | lighthouse | beacon
440 | bottle | beer bottle
442 | bell tower | bell cote
444 | bicycle | bicycle-built-for-two
454 | shop | bookshop
458 | plaque | brass
459 | bra | brassiere
460 | jetty | breakwater
467 | shop | butcher shop
468 | taxi | cab
469 | pot | caldron
484 | sailboat | catamaran
486 | violin | cello
487 | cell phone | cellular telephone
494 | bell | chime
499 | knife | cleaver
504 | cup | coffee mug
505 | coffee pot | coffeepot
506 | spiral | coil
508 | keyboard | computer keyboard
509 | shop | confectionery
510 | ship | container ship
511 | car | convertible
513 | trumpet | cornet
517 | construction crane | crane
521 | pot | Crock Pot
528 | telephone | dial telephone
530 | clock | digital clock
531 | watch | digital watch
532 | table | dining table
537 | sled | dogsled
544 | pot | Dutch oven
545 | fan | electric fan
547 | train | electric locomotive
553 | filing cabinet | file
555 | fire truck | fire engine
556 | fireplace screen | fire screen
559 | chair | folding chair
560 | helmet | football helmet
564 | bed | four-poster
565 | train | freight car
569 | truck | garbage truck
570 | gas mask | gasmask
572 | wine glass | goblet
575 | golf cart | golfcart
579 | piano | grand piano
582 | shop | grocery store
584 | hair clip | hair slide
589 | hair dryer | hand blower
592 | hard disk | hard disc
596 | axe | hatchet
605 | music player | iPod
608 | jeans | jean
610 | t-shirt | jersey
617 | coat | lab coat
623 | paper knife | letter opener
628 | ship | liner
638 | swimsuit | maillot
639 | swimsuit | maillot
648 | cabinet | medicine chest
654 | bus | minibus
661 | car | Model T
665 | motorcycle | moped
671 | bicycle | mountain bike
672 | tent | mountain tent
673 | computer mouse | mouse
675 | truck | moving van
680 | - | nipple
681 | laptop | notebook
697 | pajamas | pajama
703 | bench | park bench
705 | train | passenger car
707 | pay phone | pay-phone
714 | guitar pick | pick
717 | pickup truck | pickup
720 | bottle | pill bottle
724 | ship | pirate
726 | hand plane | plane
732 | camera | Polaroid camera
737 | bottle | pop bottle
738 | potted plant | pot
744 | rocket | projectile
748 | handbag | purse
751 | race car | racer
757 | camper van | recreational vehicle
759 | camera | reflex camera
765 | chair | rocking chair
767 | - | rubber eraser
770 | shoe | running shoe
776 | saxophone | sax
780 | sailboat | schooner
782 | monitor | screen
788 | shop | shoe shop
800 | slot machine | slot
809 | bowl | soup bowl
810 | keyboard | space bar
814 | boat | speedboat
820 | train | steam locomotive
829 | tram | streetcar
831 | couch | studio couch
836-837 | sunglasses | sunglass
838 | - | sunscreen
840 | mop | swab
850 | teddy bear | teddy
860 | shop | tobacco shop
861 | toilet | toilet seat
867 | truck | trailer truck
871 | sailboat | trimaran
874 | bus | trolleybus
878 | keyboard | typewriter keyboard
881 | piano | upright
892 | clock | wall clock
895 | airplane | warplane
896 | sink | washbasin
897 | washing machine | washer
898 | bottle | water bottle
902 | - | whistle
906 | tie | Windsor tie
907 | bottle | wine bottle
914 | sailboat | yawl
916 | - | web site
921 | book | book jacket
930 | bread | French loaf
934 | hot dog | hotdog
936 | cabbage | head cabbage
940-942 | squash | spaghetti squash
948 | apple | Granny Smith
959 | pasta | carbonara
966 | wine glass | red wine
967 | coffee | espresso
970 | mountain | alp
975 | lake | lakeside
976 | coast | promontory
977 | beach | sandbar
978 | coast | seashore
981 | baseball player | ballplayer
983 | diver | scuba diver
984 | field of flowers | rapeseed
985 | flower | daisy
986 | flower | yellow lady's slipper
992-997 | mushroom | agaric
998 | ear of corn | ear
999 | toilet paper | toilet tissue
"""


def words_of(first_names: Sequence[str]) -> list[str]:
    """Return the word of each class; an empty one is never said.

    Args:
        first_names: first WordNet name of each class, in order.

    Raises:
        RemeasureError: the table does not fit the classes.
    """
    words = [name.lower() for name in first_names]
    taken = -1
    for line in TABLE.strip().splitlines():
        places, word, example = (part.strip() for part in line.split("|"))
        first, _, last = places.partition("-")
        start, end = int(first), int(last or first)
        if not taken < start <= end < len(words) or first_names[start] != example:
            raise RemeasureError(
                f"everyday words: {line!r} is out of order, or class {start} is another; this is no list "
                "of the classes of ImageNet 2012: delete it, it is fetched again"
            )
        words[start : end + 1] = ["" if word == "-" else word] * (end + 1 - start)
        taken = end
    return words
