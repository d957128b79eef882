all: $(patsubst data/%.c,data/%.o,$(wildcard data/*.c))
data/%.o: data/%.c
	cp $< $@
