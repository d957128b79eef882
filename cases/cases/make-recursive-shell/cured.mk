STAMP := $(shell cat data/version)
$(info $(foreach n,$(shell seq 60),$n.$(STAMP)))
all: ;
