// Package words makes human-readable names of two words of the letters a to z, such as calm-otter: the
// DNS labels of Client APIs.
package words

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// The words are short, and polite in any pair.
var (
	adjectives = strings.Fields(`
		able agile airy amber ample aqua autumn azure balmy bold brave breezy bright brisk broad bronze calm candid
		careful cheery civil clear clever cloudy cobalt cool copper coral cosy crimson crisp curious daring dapper
		deep dewy eager early earnest easy elated even fair fancy fast fine firm fleet fluent fond frank free fresh
		frosty gentle giant gifted glad gleaming golden good graceful grand grateful green handy happy hardy hazel
		hearty honest humble ideal indigo ivory jade jolly jovial joyful keen kind lasting lavish level light lilac
		lively loyal lucid lucky lunar magic maple mellow merry mighty mild mindful mint misty modest mossy neat
		nimble noble novel olive open patient peaceful pearly playful plucky polite proud prompt pure quick quiet
		rapid ready regal rosy royal ruby rustic sage sandy scenic serene sharp shiny silent silver simple sincere
		sleek smart smooth snowy social soft solar solid sound spry stable steady still stout strong sturdy subtle
		sunny sure swift tall tidy tranquil trim true trusty upbeat urban valiant velvet vernal vital vivid warm wavy
		wide wild willing windy winter wise witty wooden worthy young zesty`)
	nouns = strings.Fields(`
		acorn alder alpaca anchor antler apple aspen aster badger bamboo basil bay beacon beaver beech birch bison
		bloom boulder breeze bridge brook buffalo canyon canoe cape caribou castle cedar cherry cliff cloud clover
		coast comet compass condor cove coyote crane creek cricket crow cypress daisy dawn deer delta dolphin dove
		dune eagle elk elm ember falcon fawn fern ferret field finch fjord forest fox frog gale garden gazelle gecko
		glacier glade goose gorge grove gull harbor hare hawk hazel heath heron hill hollow ibis inlet iris island ivy
		jackal jasmine jay juniper kestrel kite koala lagoon lake lantern larch lark laurel leaf lemur lily lime
		linden lion lodge lotus lynx magpie mallow maple marten meadow mesa mole moon moose moss moth mountain newt
		nook oak oasis ocean orchid osprey otter owl palm panda panther peak pebble pelican penguin pine planet plover
		plum poplar poppy prairie puffin quail quarry quartz rabbit raven reed reef ridge river robin rose rowan sail
		salmon sequoia shell shore sky sparrow spring spruce squirrel star stone stork stream summit sun swallow swan
		thicket thistle thrush tide tiger timber toucan trail tulip turtle valley violet walnut walrus warbler wave
		whale willow wolf wombat wren yak yew zebra`)
)

// Pair returns two words joined by a hyphen, always the same for a seed. There are only 36,400 pairs,
// so that two seeds may have the same pair.
func Pair(seed string) string {
	sum := sha256.Sum256([]byte(seed))
	pick := func(words []string, at int) string {
		return words[binary.BigEndian.Uint64(sum[at:])%uint64(len(words))]
	}
	return pick(adjectives, 0) + "-" + pick(nouns, 8)
}
