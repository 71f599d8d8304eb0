package kallscope

// ModuleSymbolsFromMemory returns the symbols of all modules, as lines.
func ModuleSymbolsFromMemory() ([]string, error) {
	table, err := newLive("/").symbolsFromMemory()
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, s := range table.All() {
		if s.Module != "" {
			lines = append(lines, s.String())
		}
	}
	return lines, nil
}
